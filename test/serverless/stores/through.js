/** A Worker that creates a ring in a store, replaces it, and answers with the result or error of each call. */
export function through(ringAt) {
  return {
    async fetch(request, env) {
      if (request.method === 'HEAD') return new Response();
      const ring = await ringAt(env);
      const outcomes = [];
      const call = async (run) => {
        try {
          const answer = await run();
          outcomes.push(answer?.document ?? (answer === undefined ? 'absent' : 'written'));
          return answer?.revision;
        } catch (error) {
          outcomes.push(error.kind ?? error.name);
        }
      };
      await call(() => ring.read());
      const revision = await call(() => ring.write('first', { expected: undefined }));
      await call(() => ring.write('other', { expected: undefined }));
      await call(() => ring.write('second', { expected: revision }));
      await call(() => ring.write('third', { expected: revision }));
      await call(() => ring.read());
      await ring.close?.();
      return Response.json(outcomes);
    },
  };
}
