# A ring in S3, for servers in EKS pods: pod identity gives a pod the role of its service account.

terraform {
  required_version = ">= 1.9"

  required_providers {
    aws = {
      source  = "hashicorp/aws"
      version = ">= 5.100, < 7"
    }
  }
}

provider "aws" {
  region = var.region
}

variable "region" {
  description = "The Region of the key and the bucket."
  type        = string
  default     = "eu-west-1"
}

variable "bucket_name" {
  description = "A bucket name that is not in use yet."
  type        = string
}

variable "trial" {
  description = "Whether `terraform destroy` may delete the store with the ring in it."
  type        = bool
  default     = false
}

locals {
  roles = toset(["server", "reader", "rotator", "rescuer"])
}

resource "aws_iam_role" "role" {
  for_each = local.roles

  name = "payments-${each.key}"
  assume_role_policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect    = "Allow"
      Principal = { Service = "pods.eks.amazonaws.com" }
      Action    = ["sts:AssumeRole", "sts:TagSession"]
    }]
  })
}

resource "aws_sns_topic" "alarms" {
  name = "payments-sealring-alarms"
}

data "aws_iam_policy_document" "alarms" {
  statement {
    actions   = ["sns:Publish"]
    resources = [aws_sns_topic.alarms.arn]

    principals {
      type        = "Service"
      identifiers = ["cloudwatch.amazonaws.com", "events.amazonaws.com"]
    }
  }
}

resource "aws_sns_topic_policy" "alarms" {
  arn    = aws_sns_topic.alarms.arn
  policy = data.aws_iam_policy_document.alarms.json
}

module "sealring" {
  source = "../.."

  ring_name               = "payments"
  bucket_name             = var.bucket_name
  member_role_arns        = [aws_iam_role.role["server"].arn]
  reader_role_arns        = [aws_iam_role.role["reader"].arn]
  rotator_role_arns       = [aws_iam_role.role["rotator"].arn]
  break_glass_role_arns   = [aws_iam_role.role["rescuer"].arn]
  attach_policies         = true
  alarm_topic_arns        = [aws_sns_topic.alarms.arn]
  allow_store_destruction = var.trial
}

output "codec_options" {
  description = "Options of createAwsKmsCodec."
  value       = module.sealring.codec_options
}

output "ring_options" {
  description = "Options of s3Ring."
  value       = module.sealring.s3_ring_options
}

output "environment" {
  description = "The same, as variables for a container."
  value       = module.sealring.environment
}

output "environment_file" {
  description = "The same as an environment file."
  value       = module.sealring.environment_file
}

output "policies" {
  description = "What each role may do."
  value       = module.sealring.policies
}
