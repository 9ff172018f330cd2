mock_resource "google_kms_key_ring" {
  defaults = { id = "projects/shop-prod/locations/europe-west1/keyRings/sealring-payments" }
}
mock_resource "google_kms_crypto_key" {
  defaults = { id = "projects/shop-prod/locations/europe-west1/keyRings/sealring-payments/cryptoKeys/payments" }
}
# Each has its own name: a grant must name the right one.
mock_resource "google_project_iam_custom_role" {
  defaults = {}
}
