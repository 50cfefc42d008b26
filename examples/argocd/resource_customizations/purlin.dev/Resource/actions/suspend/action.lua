-- A manifest in Git without `spec.suspend` leaves it as it is.
obj.spec.suspend = true
return obj
