export type { SingleUseStore } from '@sealring/core';
