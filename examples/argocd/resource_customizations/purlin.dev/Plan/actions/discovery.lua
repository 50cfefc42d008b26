local status = obj.status or {}
local is_open = status.approval == "Waiting" and obj.spec.approved ~= true and obj.spec.rejected ~= true
return {
  approve = {disabled = not is_open},
  reject = {disabled = not is_open},
}
