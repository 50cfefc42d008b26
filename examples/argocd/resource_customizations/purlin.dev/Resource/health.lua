-- The health of a Resource or a DataSource: Healthy only when its newest generation was carried out.
local health = {status = "Progressing", message = "Purlin has not processed this generation yet"}
local annotations = obj.metadata.annotations or {}
local status = obj.status or {}
local conditions = {}
for _, condition in ipairs(status.conditions or {}) do
  conditions[condition.type] = condition
end

local function is_true(kind)
  return conditions[kind] ~= nil and conditions[kind].status == "True"
end

if obj.metadata.deletionTimestamp ~= nil then
  health.message = "the object is being destroyed"
  if conditions.Ready ~= nil then
    health.message = conditions.Ready.message
  end
  return health
end
if obj.spec ~= nil and obj.spec.suspend == true then
  health.status = "Suspended"
  health.message = "suspended"
  return health
end
if status.observedGeneration ~= obj.metadata.generation or conditions.Ready == nil then
  return health
end
health.message = conditions.Ready.message
if is_true("ApprovalRequired") then
  health.status = "Suspended"
  health.message = conditions.ApprovalRequired.message
elseif is_true("Stalled") then
  health.status = "Degraded"
  health.message = conditions.Stalled.message
elseif is_true("Reconciling") then
  health.message = conditions.Reconciling.message
elseif is_true("Ready") then
  local requested = annotations["purlin.dev/reconcile-requested-at"]
  if requested ~= nil and requested ~= status.lastHandledReconcileAt then
    health.message = "a reconciliation was requested"
  else
    health.status = "Healthy"
  end
end
return health
