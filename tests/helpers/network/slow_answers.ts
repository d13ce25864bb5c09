/**
 * Slowness on purpose, because a test that races fails there, at no cost of processor time. `TEST_SLOW_ANSWERS=300` lets each
 * request of a page to the API, and each answer, take up to 300 ms. `TEST_SLOW_STEPS=300` lets each step of a test wait
 * 300 ms, so that the page is ahead of its test.
 */

/** What a request or an answer takes at most, in ms; 0 in an ordinary run. */
const MAX_DELAY_MS = Number(Deno.env.get("TEST_SLOW_ANSWERS") ?? 0);

/** What each step of a test waits, in ms; 0 in an ordinary run. */
export const stepDelayMs = Number(Deno.env.get("TEST_SLOW_STEPS") ?? 0);

/** Gives the answer to a request; late where that is asked for and a page sent the request to the API. */
export async function answerInTime(request: Request, answer: () => Promise<Response>): Promise<Response> {
  const isLate = MAX_DELAY_MS > 0 && request.headers.has("sec-fetch-site") &&
    new URL(request.url).pathname.startsWith("/api/");
  if (!isLate) return await answer();
  await pause();
  const response = await answer();
  await pause();
  return response;
}

function pause(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, Math.random() * MAX_DELAY_MS));
}
