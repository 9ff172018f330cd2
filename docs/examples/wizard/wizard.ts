import { randomUUID } from 'node:crypto';
import {
  type ElicitRequestFormParams,
  type InputRequiredResult,
  inputRequired,
  inputResponse,
  type McpServer,
} from '@modelcontextprotocol/server';

type Field = ElicitRequestFormParams['requestedSchema']['properties'][string];

type Answer = string | number | boolean;

interface Page {
  readonly question: (answers: readonly Answer[]) => string;
  readonly field: Field;
  readonly accepts: (value: unknown) => value is Answer;
}

const isText = (value: unknown): value is string => typeof value === 'string';
const isFlag = (value: unknown): value is boolean => typeof value === 'boolean';
const isNights = (value: unknown): value is number =>
  typeof value === 'number' && Number.isInteger(value) && value >= 1 && value <= 30;

const PAGES: readonly Page[] = [
  { question: () => 'Where to?', field: { type: 'string' }, accepts: isText },
  {
    question: ([city = '']) => `How many nights in ${city}?`,
    field: { type: 'integer', minimum: 1, maximum: 30 },
    accepts: isNights,
  },
  { question: () => 'Breakfast?', field: { type: 'boolean' }, accepts: isFlag },
  { question: (answers) => `Book ${summary(answers)}?`, field: { type: 'boolean' }, accepts: isFlag },
];

/** Everything known about a booking. The server stores nothing: the state grows by one answer with each page. */
interface State {
  /** Created on the first page, so that sending the last page twice books only once. */
  readonly booking: string;
  readonly answers: readonly Answer[];
}

/** A tool of several pages: accept continues, decline goes back one page, cancel ends it. */
export function registerWizard(server: McpServer, bookings: Set<string>): void {
  server.registerTool('book', { description: 'Books a hotel, page by page' }, (ctx) => {
    const text = ctx.mcpReq.requestState<string>();
    if (text === undefined) return ask({ booking: randomUUID(), answers: [] });
    const state = JSON.parse(text) as State;
    // The answer comes from the client and is checked; the state comes from this fleet.
    const reply = inputResponse(ctx.mcpReq.inputResponses, 'answer');
    if (reply.kind !== 'elicit') return ask(state);
    if (reply.action === 'cancel') return say('stopped');
    if (reply.action === 'decline') return ask({ ...state, answers: state.answers.slice(0, -1) });
    const value = reply.content?.['value'];
    const page = PAGES[state.answers.length];
    if (page?.accepts(value) !== true) return ask(state);
    const answers = [...state.answers, value];
    return answers.length < PAGES.length ? ask({ ...state, answers }) : book(state.booking, answers, bookings);
  });
}

function ask(state: State): InputRequiredResult {
  const page = PAGES[state.answers.length];
  if (page === undefined) throw new Error('no such page');
  const answer = inputRequired.elicit({
    message: page.question(state.answers),
    requestedSchema: { type: 'object', properties: { value: page.field }, required: ['value'] },
  });
  return inputRequired({ inputRequests: { answer }, requestState: JSON.stringify(state) });
}

function book(booking: string, answers: readonly Answer[], bookings: Set<string>) {
  if (answers.at(-1) !== true) return say('nothing booked');
  if (bookings.has(booking)) return say(`already booked: ${summary(answers)}`);
  bookings.add(booking);
  return say(`booked: ${summary(answers)}`);
}

function summary([city = '', nights = 0, breakfast = false]: readonly Answer[]): string {
  return `${nights} nights in ${city} ${breakfast === true ? 'with' : 'without'} breakfast`;
}

function say(text: string) {
  return { content: [{ type: 'text' as const, text }] };
}
