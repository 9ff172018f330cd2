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
