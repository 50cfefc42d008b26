if obj.metadata.annotations ~= nil then
  obj.metadata.annotations["purlin.dev/paused"] = nil
end
if obj.spec.suspend == true then
  obj.spec.suspend = false
end
return obj
