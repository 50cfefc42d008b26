-- The health of a Plan: Suspended while its changes wait for a decision.
local health = {status = "Progressing", message = "the changes are not computed yet"}
local status = obj.status or {}
local computed
for _, condition in ipairs(status.conditions or {}) do
  if condition.type == "Computed" then
    computed = condition
  end
end
if computed ~= nil then
  health.message = computed.message
end
if status.approval == "Waiting" then
  health.status = "Suspended"
  if obj.spec.approved ~= true and obj.spec.rejected ~= true then
    health.message = "approval required: " .. health.message
  end
elseif status.approval == "Rejected" then
  health.status = "Suspended"
  health.message = "rejected: " .. health.message
elseif status.approval == "Invalid" then
  health.status = "Degraded"
  health.message = "invalid: its changes are not those of its digest"
elseif status.approval ~= nil and status.approval ~= "Approved" then
  -- Applied, Superseded or Expired.
  health.status = "Healthy"
elseif status.approval == nil and computed ~= nil then
  -- A preview.
  if computed.status ~= "True" or status.result == "Errors" then
    health.status = "Degraded"
  else
    health.status = "Healthy"
  end
end
return health
