-- The annotation, not `spec.suspend`: the Resource stays in sync with Git.
if obj.metadata.annotations == nil then
  obj.metadata.annotations = {}
end
obj.metadata.annotations["purlin.dev/paused"] = "true"
return obj
