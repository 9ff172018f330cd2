# The policies in every shape; test/terraform in this repository checks their content as data.

mock_provider "aws" {
  source = "./tests/mocks"
}

variables {
  ring_name             = "payments"
  bucket_name           = "payments-sealring"
  member_role_arns      = ["arn:aws:iam::111122223333:role/servers/member"]
  reader_role_arns      = ["arn:aws:iam::111122223333:role/reader"]
  rotator_role_arns     = ["arn:aws:iam::111122223333:role/rotator"]
  break_glass_role_arns = ["arn:aws:iam::111122223333:role/rescuer"]
}

run "s3" {
  assert {
    condition     = keys(output.policies) == ["break_glass", "member", "reader", "rotator"] && keys(output.vpc_endpoint_policies) == ["kms", "s3"]
    error_message = "There must be a policy for each role, and one for each endpoint."
  }
}

run "dynamodb" {
  variables {
    store      = "dynamodb"
    single_use = true
  }
  assert {
    condition     = keys(output.policies) == ["break_glass", "member", "reader", "rotator"] && keys(output.vpc_endpoint_policies) == ["dynamodb", "kms"]
    error_message = "There must be a policy for each role, and one for each endpoint."
  }
}

run "a_later_key_wrapper" {
  variables {
    later_key_wrapper = true
  }
  assert {
    condition     = jsondecode(output.policies.member).Statement[0].Action == ["kms:Encrypt", "kms:Decrypt"]
    error_message = "A member of a later key wrapper must encrypt instead of making data keys."
  }
}
