# A ring in DynamoDB, with single use of tokens, for servers that run as ECS tasks.

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
  description = "The Region of the key and the table."
  type        = string
  default     = "eu-west-1"
}

variable "table_name" {
  description = "The name of the table to create."
  type        = string
  default     = "sealring"
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

  name = "orders-${each.key}"
  assume_role_policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect    = "Allow"
      Principal = { Service = "ecs-tasks.amazonaws.com" }
      Action    = ["sts:AssumeRole"]
    }]
  })
}

module "sealring" {
  source = "../.."

  ring_name               = "orders"
  store                   = "dynamodb"
  table_name              = var.table_name
  single_use              = true
  member_role_arns        = [aws_iam_role.role["server"].arn]
  reader_role_arns        = [aws_iam_role.role["reader"].arn]
  rotator_role_arns       = [aws_iam_role.role["rotator"].arn]
  break_glass_role_arns   = [aws_iam_role.role["rescuer"].arn]
  attach_policies         = true
  allow_store_destruction = var.trial
}

output "codec_options" {
  description = "Options of createAwsKmsCodec."
  value       = module.sealring.codec_options
}

output "ring_options" {
  description = "Options of dynamodbRing."
  value       = module.sealring.dynamodb_ring_options
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
