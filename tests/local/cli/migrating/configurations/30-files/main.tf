variable "sites" {
  default = {
    shop = { title = "The Shop", pages = ["index", "cart"] }
    blog = { title = "The Blog", pages = ["index"] }
  }
}

locals {
  pages = flatten([for site, settings in var.sites : [for page in settings.pages : { site = site, page = page, title = settings.title }]])
}

resource "local_file" "page" {
  for_each = { for one in local.pages : "${one.site}/${one.page}" => one }
  filename = "site/${each.value.site}/${each.value.page}.html"
  content  = "<h1>${each.value.title}</h1>"
}

resource "local_file" "index" {
  filename = "site/index.txt"
  content  = join("\n", [for file in local_file.page : file.filename])
}
