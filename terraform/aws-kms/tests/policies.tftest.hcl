# The policies in every shape; what they must be is checked as data, by test/terraform in this repository.

mock_provider "aws" {
  mock_data "aws_caller_identity" {
    defaults = { account_id = "111122223333" }
  }
  mock_data "aws_partition" {
    defaults = { partition = "aws" }
  }
  mock_resource "aws_kms_key" {
    defaults = {
      arn    = "arn:aws:kms:eu-west-1:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab"
      key_id = "1234abcd-12ab-34cd-56ef-1234567890ab"
    }
  }
  mock_resource "aws_s3_bucket" {
    defaults = { id = "payments-sealring" }
  }
  mock_resource "aws_dynamodb_table" {
    defaults = { arn = "arn:aws:dynamodb:eu-west-1:111122223333:table/sealring" }
  }
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
