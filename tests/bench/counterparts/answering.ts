/** A server that answers each request with a few bytes. Arguments: the files of its certificate and key, for HTTPS. */
if (import.meta.main) {
  const [certFile, keyFile] = Deno.args;
  const tls = certFile === undefined || keyFile === undefined
    ? {}
    : { cert: await Deno.readTextFile(certFile), key: await Deno.readTextFile(keyFile) };
  Deno.serve({
    ...tls,
    hostname: "127.0.0.1",
    port: 0,
    // The runner looks for this form.
    onListen: ({ port }) => console.log(`listening on http://127.0.0.1:${port}`),
  }, () => new Response("hello"));
}
