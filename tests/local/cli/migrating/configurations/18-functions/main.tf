variable "names" {
  default = ["web", "api"]
}

resource "random_pet" "one" {}

resource "terraform_data" "text" {
  input = {
    upper    = upper(random_pet.one.id)
    parts    = split("-", random_pet.one.id)
    first    = element(split("-", random_pet.one.id), 0)
    joined   = join("/", [for part in split("-", random_pet.one.id) : "x-${part}"])
    padded   = format("%s-%05d", random_pet.one.id, 7)
    plain    = format("%s has %d", random_pet.one.id, 7)
    replaced = replace(random_pet.one.id, "-", "_")
    pattern  = replace(random_pet.one.id, "/[aeiou]/", "*")
    encoded  = base64encode(random_pet.one.id)
    json     = jsonencode({ name = random_pet.one.id, all = var.names })
    length   = length(random_pet.one.id) > 0
    ends     = trimsuffix("${random_pet.one.id}.d", ".d")
    hash     = md5(random_pet.one.id)
    chosen   = contains(var.names, "web") ? random_pet.one.id : "none"
    merged   = merge({ a = random_pet.one.id }, { b = "b" })
    keys     = keys({ b = 1, a = 2 })
    sum      = sum([1, 2, 3])
    maximum  = max(3, 9, 4)
    tried    = try(var.names[7], "no seventh")
    title    = title("hello world")
    network  = cidrsubnet("10.0.0.0/8", 8, 2)
  }
}
