resource "time_static" "launch" {
  rfc3339 = "2030-01-02T03:04:05Z"
}

resource "time_offset" "end" {
  base_rfc3339 = time_static.launch.rfc3339
  offset_days  = 30
}

resource "terraform_data" "period" {
  input = join(" to ", [time_static.launch.rfc3339, time_offset.end.rfc3339])
}
