local os = require("os")
if obj.metadata.annotations == nil then
  obj.metadata.annotations = {}
end
obj.metadata.annotations["purlin.dev/reconcile-requested-at"] = os.date("!%Y-%m-%dT%XZ")
return obj
