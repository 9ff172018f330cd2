# A ring in Cloud Storage, for servers in GKE pods: a Kubernetes service account is itself a principal of the cluster's pool.

terraform {
  required_version = ">= 1.9"

  required_providers {
    google = {
      source  = "hashicorp/google"
      version = "~> 6.50"
    }
  }
}

provider "google" {
  project = var.project_id
}

variable "project_id" {
  description = "The project of the cluster, the key and the bucket."
  type        = string
}

variable "location" {
  description = "The region of the key and the bucket."
  type        = string
  default     = "europe-west1"
}

variable "bucket_name" {
  description = "A bucket name that is not in use yet."
  type        = string
}

variable "rescuer_email" {
  description = "Who may impersonate a service account, and so get its permissions, after an accident."
  type        = string
}

data "google_project" "this" {
  project_id = var.project_id
}

locals {
  pool = "principal://iam.googleapis.com/projects/${data.google_project.this.number}/locations/global/workloadIdentityPools/${var.project_id}.svc.id.goog"
}

# A rescuer is a person who takes on the permissions only for as long as they are needed.
resource "google_service_account" "rescuer" {
  project      = var.project_id
  account_id   = "payments-rescuer"
  display_name = "Sealring payments: after an accident"
}

resource "google_service_account_iam_member" "rescuer" {
  service_account_id = google_service_account.rescuer.name
  role               = "roles/iam.serviceAccountTokenCreator"
  member             = "user:${var.rescuer_email}"
}

module "sealring" {
  source = "../.."

  project_id             = var.project_id
  location               = var.location
  ring_name              = "payments"
  bucket_name            = var.bucket_name
  member_principals      = ["${local.pool}/subject/ns/payments/sa/server"]
  reader_principals      = ["${local.pool}/subject/ns/payments/sa/reader"]
  rotator_principals     = ["${local.pool}/subject/ns/payments/sa/rotator"]
  break_glass_principals = [google_service_account.rescuer.member]
}

output "codec_options" {
  description = "Options of createGcpKmsCodec."
  value       = module.sealring.codec_options
}

output "ring_options" {
  description = "Options of gcsRing."
  value       = module.sealring.gcs_ring_options
}

output "environment" {
  description = "The same, as variables for a container."
  value       = module.sealring.environment
}

output "environment_file" {
  description = "The same as an environment file."
  value       = module.sealring.environment_file
}

output "grants" {
  description = "What each role may do."
  value       = module.sealring.grants
}
