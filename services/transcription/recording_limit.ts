/** Longest recording in bytes, as OpenAI limits it. Apart, because the route table loads it at start. */
export const MAX_RECORDING_BYTES = 25 * 1024 * 1024;
