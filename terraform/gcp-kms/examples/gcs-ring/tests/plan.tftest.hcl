# The example is planned as for the first time: values that Google generates, such as the rescuer's address, are not
# known yet.

mock_provider "google" {
  override_during = plan

  mock_data "google_project" {
    defaults = { number = "123456789012" }
  }
}

run "plan" {
  command = plan
  variables {
    project_id    = "shop-prod"
    bucket_name   = "payments-sealring"
    rescuer_email = "ada@example.com"
  }
  assert {
    condition     = output.ring_options == { bucket = "payments-sealring", object = "payments.ring" } && output.codec_options.ringName == "payments"
    error_message = "The outputs must be options."
  }
}
