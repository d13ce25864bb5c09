/**
 * The speech server of the benchmarks: `deno run -A speech_source.ts`. Its first audio comes as late as a small engine's
 * (Piper: 100 to 300 ms for a sentence), the rest follows in pieces.
 */

/** Delay from the request to the first audio. */
const FIRST_AUDIO_MS = 100;
/** Number of further pieces of audio, and the delay between two. */
const PIECES = 5;
const PAUSE_MS = 5;
const PIECE_BYTES = 4096;

if (import.meta.main) {
  const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));
  const piece = new Uint8Array(PIECE_BYTES);
  piece.set([0xff, 0xfb, 0x90, 0xc4]);
  Deno.serve({
    hostname: "127.0.0.1",
    port: 0,
    onListen: ({ port }) => console.log(`listening on http://127.0.0.1:${port}`),
  }, async (request) => {
    await request.text();
    const body = new ReadableStream<Uint8Array>({
      async start(controller) {
        await pause(FIRST_AUDIO_MS);
        for (let n = 0; n <= PIECES; n++) {
          controller.enqueue(piece);
          await pause(PAUSE_MS);
        }
        controller.close();
      },
    });
    return new Response(body, { headers: { "Content-Type": "audio/mpeg" } });
  });
}
