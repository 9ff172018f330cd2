export declare const TIER_LINES: readonly string[];
export declare function tierOf(file: string): 'long' | 'services' | 'quick';
