/** Pictures by a real ComfyUI of the older dialect with a small checkpoint, and Parlor as a process beside it. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { sniffImage } from "../../services/attachments/images/image_header.ts";
import { framesOf, until as untilWithin } from "../helpers/app/chat_client.ts";
import { type ChildServer, startChildServer } from "../helpers/app/child_server.ts";
import { isFree } from "./helpers/llama_server.ts";
import { type LoopbackTool, startTool } from "./helpers/loopback_tool.ts";
import { realPart } from "./helpers/real_part.ts";

const INSTALLED = realPart("REAL_COMFYUI_DIR", "comfyui.sh");
/** The port that the search for backends asks. */
const USUAL_PORT = 8188;
/** Room for a machine that is busy with something else. */
const SLOW_MS = 180_000;
const CHECKPOINT = "tiny.safetensors";
const EVENTS = { accept: "text/event-stream" };

/** Waits for what a busy machine takes its time over. */
const until = (condition: () => boolean | Promise<boolean>, what: string) => untilWithin(condition, what, SLOW_MS / 2);

interface Answer {
  images: { name: string; url: string; width: number; height: number; seed: number }[];
  message_id?: string;
}

describe.skipIf(INSTALLED === undefined)("with a real ComfyUI", { timeout: SLOW_MS }, () => {
  let comfy: LoopbackTool;
  let parlor: ChildServer;
  let dataDir: string;
  const isOnUsualPort = INSTALLED !== undefined && isFree(USUAL_PORT);

  const start = async () => {
    comfy = await startTool("comfyui.sh", INSTALLED!, isOnUsualPort ? USUAL_PORT : undefined);
    const defaults = { width: 64, height: 64, steps: 4 };
    await parlor.json("PUT", "/api/image/connections", { id: "real", kind: "comfyui", base_url: comfy.url, defaults });
  };
  const draw = (body: Record<string, unknown>) => parlor.json<Answer>("POST", "/api/image/generate", body);
  const bytesOf = async (url: string) => await (await parlor.request("GET", url)).bytes();
  const queue = async (): Promise<{ queue_running: unknown[]; queue_pending: unknown[] }> =>
    await (await fetch(`${comfy.url}/queue`)).json();
  const isIdle = async () => {
    const { queue_running, queue_pending } = await queue();
    return queue_running.length + queue_pending.length === 0;
  };
  const isBusy = async () => (await queue()).queue_running.length > 0;
  const follow = (body: Record<string, unknown>) =>
    parlor.request("POST", "/api/image/generate", body, { headers: { ...EVENTS, "content-type": "application/json" } });

  beforeAll(async () => {
    dataDir = await Deno.makeTempDir({ prefix: "parlor-comfyui-" });
    parlor = await startChildServer({ dataDir });
    await start();
  }, SLOW_MS);

  afterAll(async () => {
    await parlor?.[Symbol.asyncDispose]();
    await comfy?.[Symbol.asyncDispose]();
    if (dataDir) await Deno.remove(dataDir, { recursive: true });
  });

  test("it is tested as itself, lists its checkpoint, and is found where it is expected", async () => {
    const entered = { kind: "comfyui", base_url: comfy.url };
    expect(await parlor.json("POST", "/api/image/connections/test", entered)).toEqual({ reachable: true });
    expect(await parlor.json("GET", "/api/image/connections/real/checkpoints")).toEqual([
      { name: CHECKPOINT, title: CHECKPOINT },
    ]);
    const found = await parlor.json("POST", "/api/image/discover", {});
    if (isOnUsualPort) expect(found).toContainEqual({ kind: "comfyui", base_url: comfy.url });
  });

  test("the starter workflow draws: another seed is another picture, the same one the same", async () => {
    const [first, again, other] = [
      await draw({ prompt: "a red fox", seed: 1 }),
      await draw({ prompt: "a red fox", seed: 1, checkpoint: CHECKPOINT }),
      await draw({ prompt: "a red fox", seed: 2 }),
    ];
    expect(first.images).toEqual([expect.objectContaining({ width: 64, height: 64, seed: 1 })]);
    expect(sniffImage(await bytesOf(first.images[0]!.url))).toMatchObject({ type: "image/png", widthPx: 64 });
    const pixels = async ({ images }: Answer) => pixelPart(await bytesOf(images[0]!.url));
    expect(await pixels(again)).toEqual(await pixels(first));
    expect(await pixels(other)).not.toEqual(await pixels(first));
  });

  test("each step is reported, with a preview", async () => {
    const answer = await follow({ prompt: "a fox", steps: 12 });
    const events = (await Array.fromAsync(framesOf(answer))).map(({ event, data }) => ({
      event,
      data: JSON.parse(data),
    }));
    expect(events[0]!.event).toBe("job");
    expect(events.at(-1)!.event).toBe("done");
    const told = events.filter(({ event }) => event === "progress").map(({ data }) => data);
    expect(told.some(({ step, steps }) => step >= 1 && steps === 12)).toBe(true);
    expect(told.some(({ preview }) => preview?.startsWith("data:image/jpeg;base64,"))).toBe(true);
  });

  test("cancel ends the run on the server", async () => {
    const answer = await follow({ prompt: "a fox", steps: 400 });
    await until(isBusy, "a run");
    await parlor.json("POST", `/api/jobs/${answer.headers.get("x-parlor-job-id")}/cancel`);
    await until(isIdle, "an empty queue");
    const last = (await Array.fromAsync(framesOf(answer))).at(-1)!;
    expect([last.event, JSON.parse(last.data).error.code]).toEqual(["error", "cancelled"]);
  });

  test("a picture outlives its client and comes to its message", async () => {
    const messages = [{ id: "m1", role: "assistant", content: "A fox looks out of the fern." }];
    await parlor.json("PUT", "/api/conversations/c1", { messages });
    const answer = await follow({ prompt: "a fox", steps: 40, conversation_id: "c1", message_id: "m1" });
    await until(isBusy, "a run");
    await answer.body!.cancel();
    await until(async () => {
      const { messages } = await parlor.json<{ messages: { attachments?: string[] }[] }>(
        "GET",
        "/api/conversations/c1",
      );
      return messages[0]!.attachments?.length === 1;
    }, "the picture");
  });

  test("a missing checkpoint is reported with the name of its node", async () => {
    const answer = await parlor.request("POST", "/api/image/generate", { prompt: "a fox", checkpoint: "gone.ckpt" });
    expect(answer.status).toBe(422);
    const { error } = await answer.json();
    expect(error.issues).toEqual([
      { path: "4.inputs.ckpt_name", message: expect.stringContaining('"gone.ckpt" isn\'t installed') },
    ]);
  });

  test("a failed run has the message of its node", async () => {
    await parlor.json("PUT", "/api/image/workflows/huge", {
      "1": { class_type: "EmptyImage", inputs: { width: 16384, height: 16384, batch_size: 4096, color: 0 } },
      "2": { class_type: "PreviewImage", inputs: { images: ["1", 0] } },
    });
    const answer = await parlor.request("POST", "/api/image/generate", { prompt: "a fox", workflow_id: "huge" });
    expect(answer.status).toBe(502);
    expect((await answer.json()).error.message).toMatch(/"EmptyImage" \(node 1\): .*memory/i);
  });

  test("a picture to begin from is uploaded and drawn", async () => {
    const { images } = await draw({ prompt: "a fox", seed: 5 });
    await parlor.json("PUT", "/api/image/workflows/same", {
      "1": { class_type: "LoadImage", inputs: { image: "%init_image%" } },
      "2": { class_type: "PreviewImage", inputs: { images: ["1", 0] } },
    });
    const copied = await draw({ prompt: "-", workflow_id: "same", init_image: images[0]!.name });
    expect(copied.images[0]).toMatchObject({ width: 64, height: 64 });
  });

  test("a character gets its portrait, the card inside", async () => {
    await parlor.json("PUT", "/api/characters/fern", { card: { name: "Fern", description: "a red fox" } });
    await parlor.json("POST", "/api/characters/fern/avatar/generate");
    const status = () => parlor.json<{ state: string }>("GET", "/api/characters/fern/avatar/status");
    await until(async () => (await status()).state === "done", "the portrait");
    const avatar = await bytesOf("/api/characters/fern/avatar");
    expect(sniffImage(avatar)).toMatchObject({ type: "image/png", widthPx: 64 });
    expect(new TextDecoder("latin1").decode(avatar)).toContain("ccv3");
  });

  test("a server that ends in the middle of a picture is a failure with words, and serves again once it is back", async () => {
    const asked = parlor.request("POST", "/api/image/generate", { prompt: "a fox", steps: 400 });
    await until(isBusy, "a run");
    await comfy.stop();
    const answer = await asked;
    expect(answer.status).toBe(502);
    expect((await answer.json()).error.message).toContain(new URL(comfy.url).host);
    await start();
    expect((await draw({ prompt: "a fox" })).images).toHaveLength(1);
  });
});

/** Behind the texts, which name the run. */
function pixelPart(png: Uint8Array): Uint8Array {
  const at = new TextDecoder("latin1").decode(png).indexOf("IDAT");
  return png.subarray(at);
}
