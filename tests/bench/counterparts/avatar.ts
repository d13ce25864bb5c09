/**
 * A picture, and nothing else: `deno run -A avatar.ts PICTURE REDUCED`. `/decode` decodes the picture and throws its pixels
 * away, `/static` gives the reduced one as the file it is.
 */
import { decode } from "imagescript";

if (import.meta.main) {
  const [picture, reduced] = Deno.args as [string, string];
  Deno.serve({
    hostname: "127.0.0.1",
    port: 0,
    onListen: ({ port }) => console.log(`listening on http://127.0.0.1:${port}`),
  }, async (request) => {
    if (new URL(request.url).pathname === "/static") {
      return new Response(await Deno.readFile(reduced), { headers: { "Content-Type": "image/png" } });
    }
    const { width, height } = await decode(await Deno.readFile(picture), true);
    return Response.json({ width, height });
  });
}
