local is_suspended = obj.spec ~= nil and obj.spec.suspend == true
return {
  reconcile = {disabled = is_suspended},
  suspend = {disabled = is_suspended},
  resume = {disabled = not is_suspended},
}
