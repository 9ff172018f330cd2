/** Claims of a small state, as the boundary prints them, filled to this many bytes. ASCII, so that text and bytes agree. */
export function payloadOf(bytes: number): { readonly payload: Buffer; readonly text: string } {
  const claims = '{"v":1,"iat":1795000000.125,"exp":1795000600.125,"m":"tools/call","t":"refund","s":"';
  const text = `${claims}${'order 1017, step 2; '.repeat(Math.ceil(bytes / 20))}`.slice(0, bytes - 2).concat('"}');
  return { payload: Buffer.from(text, 'ascii'), text };
}
