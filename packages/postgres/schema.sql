SELECT pg_advisory_xact_lock(5387104662);
CREATE TABLE IF NOT EXISTS "sealring_ring" (
  name text PRIMARY KEY,
  document text NOT NULL CHECK (octet_length(document) BETWEEN 1 AND 262144),
  -- Random, not counted: a row that was deleted, or restored from a backup, must not repeat one.
  revision uuid NOT NULL DEFAULT gen_random_uuid()
);
CREATE TABLE IF NOT EXISTS "sealring_single_use" (
  id text PRIMARY KEY,
  expires_at timestamptz NOT NULL
);
CREATE INDEX IF NOT EXISTS "sealring_single_use_expires_at" ON "sealring_single_use" (expires_at);
