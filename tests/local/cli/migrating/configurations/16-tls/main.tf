locals {
  names = ["shop.example", "www.shop.example"]
}

resource "tls_private_key" "ca" {
  algorithm = "ED25519"
}

resource "tls_self_signed_cert" "ca" {
  private_key_pem       = tls_private_key.ca.private_key_pem
  is_ca_certificate     = true
  validity_period_hours = 24 * 365 * 20
  allowed_uses          = ["cert_signing"]
  subject {
    common_name  = "ca.${local.names[0]}"
    organization = "Shop"
  }
}

resource "tls_private_key" "web" {
  algorithm = "ED25519"
}

resource "tls_cert_request" "web" {
  private_key_pem = tls_private_key.web.private_key_pem
  dns_names       = local.names
  subject {
    common_name = local.names[0]
  }
}

resource "tls_locally_signed_cert" "web" {
  cert_request_pem      = tls_cert_request.web.cert_request_pem
  ca_private_key_pem    = tls_private_key.ca.private_key_pem
  ca_cert_pem           = tls_self_signed_cert.ca.cert_pem
  validity_period_hours = 24 * 365 * 10
  allowed_uses          = ["server_auth", "digital_signature"]
}
