# The permissions in every shape; test/terraform in this repository checks their content as data.

mock_provider "google" {
  source          = "./tests/mocks"
  override_during = plan
}

variables {
  project_id  = "shop-prod"
  location    = "europe-west1"
  ring_name   = "payments"
  bucket_name = "payments-sealring"
  member_principals = [
    "serviceAccount:member@shop-prod.iam.gserviceaccount.com",
    "principal://iam.googleapis.com/projects/123456789012/locations/global/workloadIdentityPools/shop-prod.svc.id.goog/subject/ns/payments/sa/member",
  ]
  reader_principals      = ["serviceAccount:reader@shop-prod.iam.gserviceaccount.com"]
  rotator_principals     = ["serviceAccount:rotator@shop-prod.iam.gserviceaccount.com"]
  break_glass_principals = ["group:rescuers@example.com"]
}

run "grants" {
  command = plan
  assert {
    condition     = keys(output.grants) == ["break_glass", "member", "reader", "rotator"]
    error_message = "There must be grants for each role."
  }
  assert {
    condition     = [for grant in google_kms_crypto_key_iam_member.this : grant.member] == [for grant in google_storage_bucket_iam_member.object : grant.member]
    error_message = "Exactly the principals with a permission on the key must have one on the ring."
  }
  assert {
    condition     = length(google_kms_crypto_key_iam_member.this) == 5 && length(google_storage_bucket_iam_member.bucket) == 3
    error_message = "Each principal must have a permission on the key, and members and rescuers may list."
  }
  assert {
    condition = alltrue([
      for grant in google_storage_bucket_iam_member.object :
      grant.condition[0].expression == "resource.name == \"projects/_/buckets/payments-sealring/objects/payments.ring\""
    ])
    error_message = "Every permission on objects must be bound to the ring's object."
  }
  assert {
    condition     = { for name, role in google_project_iam_custom_role.this : name => role.permissions } == { for name, role in local.custom_roles : name => toset(role.permissions) }
    error_message = "Every custom role must have the granted permissions."
  }
}
