/** The state of an image that is generated for a chat. */
import { expect, test } from "vitest";
import type { ImageApi } from "../../../../static/src/api/images.ts";
import { ImageGeneration } from "../../../../static/src/state/chat/image_generation.ts";

type Draw = ImageApi["draw"];

/** Starts an image whose request the test answers. */
function startDrawing() {
  const call = Promise.withResolvers<Parameters<Draw>>();
  const answer = Promise.withResolvers<Awaited<ReturnType<Draw>>>();
  const draw: Draw = (...args) => {
    call.resolve(args);
    return answer.promise;
  };
  const generation = new ImageGeneration({ draw } as Partial<ImageApi> as ImageApi);
  const drawn = generation.draw({});
  return { generation, call: call.promise, answer, drawn };
}

test("Cancel before the job has started cancels the job as soon as it has", async () => {
  const { generation, call } = startDrawing();
  const canceled: string[] = [];
  const cancel = generation.cancel((id) => Promise.resolve(canceled.push(id)));
  const [, listener] = await call;
  expect(canceled).toEqual([]);
  listener.onJob("job-1");
  await cancel;
  expect(canceled).toEqual(["job-1"]);
});

test("Cancel cancels nothing if the request fails before the job has started", async () => {
  const { generation, answer, drawn } = startDrawing();
  const canceled: string[] = [];
  const cancel = generation.cancel((id) => Promise.resolve(canceled.push(id)));
  answer.reject(new Error("offline"));
  await Promise.all([cancel, drawn]);
  expect(canceled).toEqual([]);
  expect(generation.state.value).toBe("ready");
});

test("leaving aborts no request that is still on its way", async () => {
  const { generation, call } = startDrawing();
  const [, listener, signal] = await call;
  generation.leave();
  await Promise.resolve();
  expect(signal.aborted).toBe(false);
  listener.onJob("job-1");
  await expect.poll(() => signal.aborted).toBe(true);
});
