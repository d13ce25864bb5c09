/**
 * The transcription server of the benchmarks: `deno run -A transcription_source.ts`. It hears a short sentence as quickly as
 * a small model on a graphics card, and streams it if asked.
 */

/** Delay from the complete recording to the transcript. */
const TRANSCRIPT_MS = 100;
const TEXT = "When does the ferry come in tomorrow?";

if (import.meta.main) {
  Deno.serve({
    hostname: "127.0.0.1",
    port: 0,
    onListen: ({ port }) => console.log(`listening on http://127.0.0.1:${port}`),
  }, async (request) => {
    const form = await request.formData();
    await new Promise((resolve) => setTimeout(resolve, TRANSCRIPT_MS));
    if (form.get("stream") !== "true") return Response.json({ text: TEXT });
    const events = [{ type: "transcript.text.delta", delta: TEXT }, { type: "transcript.text.done", text: TEXT }];
    const frames = events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join("");
    return new Response(frames, { headers: { "Content-Type": "text/event-stream" } });
  });
}
