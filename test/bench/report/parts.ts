import { type BoundaryReport, judgeBoundary, measureBoundary } from '../boundary.ts';
import { type FleetCostsReport, judgeFleetCosts, measureFleetCosts } from '../fleet-costs.ts';
import { type GrowthReport, judgeGrowth, measureGrowth } from '../growth.ts';
import { type InstructionsReport, judgeInstructions, measureInstructions } from '../instructions.ts';
import { judgeSteadiness, measureSteadiness, type SteadinessReport } from '../steadiness.ts';
import { judgeTokenPath, reportTokenPath, SIZES, type TokenPathReport } from '../token-path-report.ts';
import type { Verdict } from '../verdict.ts';

export type Progress = (done: number) => void;

export interface Reports {
  readonly 'token-path': TokenPathReport;
  readonly boundary: BoundaryReport;
  readonly 'fleet-costs': FleetCostsReport;
  readonly growth: GrowthReport;
  readonly steadiness: SteadinessReport;
  readonly instructions: InstructionsReport;
}
export type PartName = keyof Reports;

/** A part of a full run, with the options of the published numbers. */
interface Part<Report, Options> {
  readonly title: string;
  readonly options: Options;
  /** Needs tools that some machines lack: a full run without it is complete. */
  readonly isOptional?: true;
  measure(options: Options, progress: Progress): Promise<Report>;
  readonly judge: (report: Report) => readonly Verdict[];
}

const part = <Report, Options>(one: Part<Report, Options>) => ({
  ...one,
  measure: (progress: Progress): Promise<Report> => one.measure(one.options, progress),
});

/** The sizes that the limits are about. */
const TOKENS = 1e7;

/** The parts in the order of the page. */
export const PARTS = {
  'token-path': part({
    title: 'Token path',
    options: { sizes: SIZES, rounds: 30, turn: 20, python: true },
    measure: reportTokenPath,
    judge: judgeTokenPath,
  }),
  boundary: part({
    title: 'Boundary',
    options: { turns: 1_000 },
    measure: measureBoundary,
    judge: judgeBoundary,
  }),
  'fleet-costs': part({
    title: 'Fleet costs',
    options: { tokens: TOKENS },
    measure: measureFleetCosts,
    judge: judgeFleetCosts,
  }),
  growth: part({
    title: 'Growth',
    options: { tokens: TOKENS },
    measure: measureGrowth,
    judge: judgeGrowth,
  }),
  steadiness: part({
    title: 'Steadiness',
    options: { rounds: 6, phaseSeconds: 10, warmUpSeconds: 10 },
    measure: measureSteadiness,
    judge: judgeSteadiness,
  }),
  instructions: part({
    title: 'Instructions',
    options: {},
    isOptional: true,
    measure: measureInstructions,
    judge: judgeInstructions,
  }),
} satisfies { readonly [Name in PartName]: unknown };

export const PART_NAMES = Object.keys(PARTS) as PartName[];
