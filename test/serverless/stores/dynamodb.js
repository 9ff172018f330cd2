import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { dynamodbRing } from '@sealring/dynamodb';
import { through } from './through.js';

export default through(({ ENDPOINT }) => {
  const credentials = { accessKeyId: 'test', secretAccessKey: 'test' };
  const client = new DynamoDBClient({ endpoint: ENDPOINT, region: 'us-east-1', maxAttempts: 1, credentials });
  return dynamodbRing({ table: 'workers', client });
});
