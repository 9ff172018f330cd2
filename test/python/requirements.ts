/** The pinned packages of the tests of `packages/python`. `setuptools` builds the wheel, without a network. */
export const REQUIREMENTS: readonly string[] = [
  'mcp==2.3.0',
  'cryptography==50.0.2',
  'boto3==1.44.5',
  'redis==8.1.0',
  'google-cloud-kms==3.18.0',
  'google-crc32c==1.9.0',
  'azure-keyvault-keys==4.11.3',
  'hvac==2.4.0',
  'psycopg==3.3.9',
  'psycopg-binary==3.3.9',
  'google-cloud-storage==3.17.1',
  'azure-storage-blob==12.31.1',
  'setuptools==84.2.1',
  'pytest==9.2.0',
  'mypy==2.4.1',
  'ruff==0.17.6',
];

/** The packages of the tests with FastMCP, in a separate environment, with the MCP Python SDK. */
export const FASTMCP_REQUIREMENTS: readonly string[] = ['fastmcp==4.1.2'];
