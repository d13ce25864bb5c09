/** A process that sends each Worker a message that it can't read, and prints what comes back. */
import { openWorker } from "../../../services/process/worker.ts";

/** Opens a Worker as its service does, and asks once or twice. */
async function ask(url: URL, times: number): Promise<void> {
  const worker = openWorker(url);
  for (let n = 0; n < times; n++) {
    const { promise, resolve } = Promise.withResolvers<string>();
    worker.onmessage = () => resolve("answer");
    worker.onerror = (event) => {
      event.preventDefault();
      resolve(`error event: ${event.message}`);
    };
    worker.postMessage(null);
    print(url, await promise);
  }
  worker.terminate();
}

function print({ pathname }: URL, came: string): void {
  console.log(JSON.stringify([pathname.slice(pathname.lastIndexOf("/") + 1, -".ts".length), came]));
}

for (const url of Deno.args.map((href) => new URL(href))) {
  await ask(url, url.pathname.endsWith("/zip_worker.ts") ? 2 : 1);
}
