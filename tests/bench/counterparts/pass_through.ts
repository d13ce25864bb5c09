/** A relay without parsing: `deno run -A pass_through.ts UPSTREAM_URL` forwards each body unchanged. */
if (import.meta.main) {
  const upstream = Deno.args[0]!;
  Deno.serve({
    hostname: "127.0.0.1",
    port: 0,
    onListen: ({ port }) => console.log(`listening on http://127.0.0.1:${port}`),
  }, async (request) => {
    const headers = { "Content-Type": "application/json" };
    const answer = await fetch(upstream, { method: "POST", headers, body: await request.text() });
    return new Response(answer.body, { status: answer.status, headers: answer.headers });
  });
}
