/** A minimal server: the base cost of starting and idling. */
if (import.meta.main) {
  Deno.serve({
    hostname: "127.0.0.1",
    port: 0,
    onListen: ({ port }) => console.log(`listening on http://127.0.0.1:${port}`),
  }, () => new Response("hello"));
}
