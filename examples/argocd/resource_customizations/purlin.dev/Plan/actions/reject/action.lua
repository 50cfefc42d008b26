obj.spec.rejected = true
return obj
