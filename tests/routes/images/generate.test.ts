import { describe, expect, test } from "vitest";
import { framesOf, until } from "../../helpers/app/chat_client.ts";
import { FakeA1111 } from "../../helpers/fakes/fake_a1111.ts";
import { FakeComfy } from "../../helpers/fakes/fake_comfy.ts";
import { dataUrl, picture, putPicture } from "../../helpers/files/pictures.ts";
import { openTestApp, type TestApp } from "../../helpers/app/test_app.ts";

const EVENTS = { headers: { accept: "text/event-stream" } };

/** What the tests need of any backend. */
interface Double extends AsyncDisposable {
  url: string;
  switches: { isManual: boolean };
  isIdle: boolean;
  begun(count?: number): Promise<void>;
  go(): void;
}

const BACKENDS: [string, "a1111" | "comfyui", () => Double][] = [
  ["A1111", "a1111", () => new FakeA1111()],
  ["ComfyUI", "comfyui", () => new FakeComfy()],
  ["an older ComfyUI", "comfyui", () => new FakeComfy({ dialect: "old" })],
];

async function useBackend(app: TestApp, kind: "a1111" | "comfyui", url: string, more: Record<string, unknown> = {}) {
  const response = await app.put("/api/image/connections", { id: "b", kind, base_url: url, ...more });
  expect(response.status).toBe(201);
}

async function errorOf(response: Response) {
  const { error } = await response.json();
  return { status: response.status, ...error };
}

// deno-lint-ignore no-explicit-any
async function eventsOf(response: Response): Promise<[string, any][]> {
  return (await Array.fromAsync(framesOf(response))).map(({ event, data }) => [event!, JSON.parse(data)]);
}

async function conversation(app: TestApp): Promise<void> {
  const messages = [{ id: "u1", role: "user", content: "Hi" }, { id: "a1", role: "assistant", content: "A red fox" }];
  await app.put("/api/conversations/c1", { messages });
}

async function findMessage(app: TestApp, mid: string) {
  const { messages } = await (await app.get("/api/conversations/c1")).json();
  return messages.find(({ id }: { id: string }) => id === mid);
}

describe.each(BACKENDS)("with %s", (_name, kind, openDouble) => {
  test("a picture is drawn, stored as an attachment, and named in the answer", async () => {
    await using backend = openDouble();
    await using app = await openTestApp();
    await useBackend(app, kind, backend.url);
    const answer = await app.post("/api/image/generate", { prompt: "a red fox", seed: 42 });
    expect(answer.status).toBe(200);
    expect(answer.headers.get("x-parlor-job-id")).toMatch(/^[0-9a-f-]{36}$/);
    const { images, profile_id, took_ms } = await answer.json();
    expect(profile_id).toBe("b");
    expect(took_ms).toBeGreaterThanOrEqual(0);
    expect(images).toEqual([{
      name: expect.stringMatching(/\.png$/),
      url: expect.any(String),
      width: 4,
      height: 3,
      seed: 42,
    }]);
    expect(await (await app.get(images[0].url)).bytes()).toEqual(picture(42));
  });

  test("progress is sent as events with a preview, then the result", async () => {
    await using backend = openDouble() as Double & { step(value: number, max: number): void };
    backend.switches.isManual = true;
    await using app = await openTestApp();
    await useBackend(app, kind, backend.url, { defaults: { steps: 8 } });
    const answer = await app.post("/api/image/generate", { prompt: "a fox" }, EVENTS);
    expect(answer.headers.get("content-type")).toBe("text/event-stream");
    const seen: [string, Record<string, unknown>][] = [];
    const isPreviewOfStep4 = ([, { step, preview }]: typeof seen[number]) => step === 4 && preview !== undefined;
    for await (const { event, data } of framesOf(answer)) {
      seen.push([event!, JSON.parse(data)]);
      if (event === "job") {
        await backend.begun();
        // Repeated: the follower may start just after the first one, and its first event may show an earlier step.
        const stepping = setInterval(() => backend.isIdle || backend.step(4, 8), 20);
        void until(() => seen.some(isPreviewOfStep4), "a preview of step 4").finally(() => {
          clearInterval(stepping);
          backend.go();
        });
      }
    }
    expect(seen[0]).toEqual(["job", { id: answer.headers.get("x-parlor-job-id") }]);
    expect(seen).toContainEqual(["progress", expect.objectContaining({ progress: 0.5, step: 4, steps: 8 })]);
    const shown = seen.find(isPreviewOfStep4)!;
    expect(shown[1].preview).toBe(dataUrl(picture(4)));
    expect(seen.at(-1)).toEqual(["done", expect.objectContaining({ profile_id: "b" })]);
  });

  test("an image is completed after its client disconnects, and still attached to its message", async () => {
    await using backend = openDouble();
    backend.switches.isManual = true;
    await using app = await openTestApp();
    await useBackend(app, kind, backend.url);
    await conversation(app);
    const leaving = new AbortController();
    const asked = app.post(
      "/api/image/generate",
      { prompt: "a fox", conversation_id: "c1", message_id: "a1", seed: 7 },
      {
        signal: leaving.signal,
      },
    );
    await backend.begun();
    leaving.abort();
    await expect(asked).rejects.toThrow();
    expect(backend.isIdle).toBe(false);
    backend.go();
    await until(async () => (await findMessage(app, "a1")).attachments !== undefined, "an attachment");
    const [name] = (await findMessage(app, "a1")).attachments;
    expect(await (await app.get(`/api/attachments/${name}`)).bytes()).toEqual(picture(7));
    const jobNow = async () => (await (await app.get("/api/jobs")).json())[0];
    await until(async () => (await jobNow()).state === "done", "the end of the job");
    expect(await jobNow()).toMatchObject({ kind: "image", detail: { message_id: "a1" } });
  });

  test("canceling frees the backend, and the waiting client gets an error", async () => {
    await using backend = openDouble();
    backend.switches.isManual = true;
    await using app = await openTestApp();
    await useBackend(app, kind, backend.url);
    const answer = await app.post("/api/image/generate", { prompt: "a fox" }, EVENTS);
    await backend.begun();
    const cancelled = await app.post(`/api/jobs/${answer.headers.get("x-parlor-job-id")}/cancel`);
    expect(await cancelled.json()).toMatchObject({ state: "cancelled" });
    await until(() => backend.isIdle, "the backend's being free");
    const [last, error] = (await eventsOf(answer)).at(-1)!;
    expect(last).toBe("error");
    expect(error.error).toMatchObject({ code: "cancelled", request_id: expect.any(String) });
  });

  test("a request that waits for a picture its owner cancels is 409 cancelled, and no defect is logged", async () => {
    await using backend = openDouble();
    backend.switches.isManual = true;
    await using app = await openTestApp();
    await useBackend(app, kind, backend.url);
    const asked = app.post("/api/image/generate", { prompt: "a fox" });
    await backend.begun();
    const [job] = await (await app.get("/api/jobs")).json();
    await app.post(`/api/jobs/${job.id}/cancel`);
    const answer = await asked;
    expect([answer.status, (await answer.json()).error.code]).toEqual([409, "cancelled"]);
    expect(app.logLines.filter((line) => line.includes("defect"))).toEqual([]);
  });

  test("two images are sent to the backend in sequence, and one that waits can be canceled there", async () => {
    await using backend = openDouble();
    backend.switches.isManual = true;
    await using app = await openTestApp();
    await useBackend(app, kind, backend.url);
    const first = await app.post("/api/image/generate", { prompt: "one" }, EVENTS);
    await backend.begun();
    const second = await app.post("/api/image/generate", { prompt: "two" }, EVENTS);
    await app.post(`/api/jobs/${second.headers.get("x-parlor-job-id")}/cancel`);
    expect((await eventsOf(second)).at(-1)![0]).toBe("error");
    expect(backend.isIdle).toBe(false);
    backend.go();
    expect((await eventsOf(first)).at(-1)![0]).toBe("done");
    backend.switches.isManual = false;
    expect((await app.post("/api/image/generate", { prompt: "three" })).status).toBe(200);
  });

  test("a picture that was being drawn when Parlor stopped is drawn after the next start", async () => {
    await using backend = openDouble();
    backend.switches.isManual = true;
    await using app = await openTestApp();
    await useBackend(app, kind, backend.url);
    await conversation(app);
    const asked = app.post("/api/image/generate", { prompt: "a fox", conversation_id: "c1" });
    asked.catch(() => {}); // its connection ends with the server
    await backend.begun();
    await app.restart(async () => {
      await until(() => backend.isIdle, "the backend's being free");
      backend.switches.isManual = false;
    });
    await until(async () => (await findMessage(app, "a1")).attachments?.length === 1, "the picture");
  });

  test("an unreachable backend gets 502 with its name", async () => {
    const backend = openDouble();
    const { url } = backend;
    await backend[Symbol.asyncDispose]();
    await using app = await openTestApp();
    await useBackend(app, kind, url);
    const error = await errorOf(await app.post("/api/image/generate", { prompt: "a fox" }));
    expect(error).toMatchObject({ status: 502, code: "upstream_error" });
    expect(error.message).toContain(url);
  });
});

test("without an active backend a picture is a 503 that says where to add one", async () => {
  await using app = await openTestApp();
  const error = await errorOf(await app.post("/api/image/generate", { prompt: "a fox" }));
  expect(error).toMatchObject({ status: 503, code: "not_available" });
  expect(error.message).toContain("Settings");
});

test("an unknown message, conversation or picture to begin from is refused before anything is drawn", async () => {
  await using backend = new FakeA1111();
  await using app = await openTestApp();
  await useBackend(app, "a1111", backend.url);
  await conversation(app);
  for (
    const more of [{ conversation_id: "c9" }, { conversation_id: "c1", message_id: "m9" }, { init_image: "gone.png" }]
  ) {
    expect((await errorOf(await app.post("/api/image/generate", { prompt: "a fox", ...more }))).code).toBe("not_found");
  }
  const broken = await app.post("/api/image/generate", { prompt: "x", init_image: "data:image/png;base64,AAAA" });
  expect(await errorOf(broken)).toMatchObject({ status: 422, issues: [{ path: "init_image" }] });
  expect(backend.orders).toEqual([]);
});

test("a picture for a message that is gone meanwhile is kept, and the answer says so", async () => {
  await using backend = new FakeA1111({ isManual: true });
  await using app = await openTestApp();
  await useBackend(app, "a1111", backend.url);
  await conversation(app);
  const asked = app.post("/api/image/generate", { prompt: "a fox", conversation_id: "c1", message_id: "a1" });
  await backend.begun();
  await app.delete("/api/conversations/c1/messages/a1");
  backend.go();
  const { images, warnings, message_id } = await (await asked).json();
  expect(warnings).toEqual(["The message was deleted, so the image isn't attached to it"]);
  expect(message_id).toBeUndefined();
  expect((await app.get(images[0].url)).status).toBe(200);
});

describe("A1111", () => {
  test("what the request says goes before the profile's defaults, and steps are always sent", async () => {
    await using backend = new FakeA1111();
    await using app = await openTestApp();
    const defaults = { negative_prompt: "blurry", width: 640, height: 832, sampler: "Euler", cfg_scale: 5 };
    await useBackend(app, "a1111", backend.url, { checkpoint: "heron", defaults });
    await app.post("/api/image/generate", { prompt: "a fox", width: 512, cfg_scale: 6, seed: 9 });
    expect(backend.orders[0]).toMatchObject({
      prompt: "a fox",
      negative_prompt: "blurry",
      width: 512,
      height: 832,
      steps: 20,
      cfg_scale: 6,
      seed: 9,
      sampler_name: "Euler",
      override_settings: { sd_model_checkpoint: "heron.safetensors" },
    });
  });

  test("an unknown checkpoint is refused before anything is drawn, since the server would take another", async () => {
    await using backend = new FakeA1111();
    await using app = await openTestApp();
    await useBackend(app, "a1111", backend.url);
    const error = await errorOf(await app.post("/api/image/generate", { prompt: "a fox", checkpoint: "wolf" }));
    expect(error).toMatchObject({ status: 422, issues: [{ path: "checkpoint" }] });
    expect(backend.orders).toEqual([]);
  });

  test("reports a different checkpoint than requested", async () => {
    await using backend = new FakeA1111({ stuckOn: "fox" });
    await using app = await openTestApp();
    await useBackend(app, "a1111", backend.url, { checkpoint: "heron" });
    const { warnings } = await (await app.post("/api/image/generate", { prompt: "a fox" })).json();
    expect(warnings).toEqual([expect.stringContaining('"fox" instead of "heron"')]);
  });

  test.each(
    [
      ["JPEG bytes", {
        picture: new Uint8Array([
          0xff,
          0xd8,
          0xff,
          0xe0,
          0,
          16,
          ...new Array(14).fill(0),
          0xff,
          0xc0,
          0,
          17,
          8,
          0,
          5,
          0,
          6,
          3,
        ]),
      }, /\.jpg$/],
      ["a grid first", { hasGrid: true }, /\.png$/],
      ["no info", { info: "empty" }, /\.png$/],
    ] as const,
  )("a response with %s returns the image", async (_what, switches, name) => {
    await using backend = new FakeA1111(switches as Partial<FakeA1111["switches"]>);
    await using app = await openTestApp();
    await useBackend(app, "a1111", backend.url);
    const { images } = await (await app.post("/api/image/generate", { prompt: "a fox", seed: 3 })).json();
    expect(images).toEqual([expect.objectContaining({ name: expect.stringMatching(name), seed: 3 })]);
    if (switches !== undefined && !("picture" in switches)) {
      expect(await (await app.get(images[0].url)).bytes()).toEqual(picture(3));
    }
  });

  test.each(
    [
      ["a1111", "CUDA out of memory"],
      ["forge", "Internal Server Error"],
      ["validation", "value is not a valid integer"],
      ["page", "didn't return JSON"],
    ] as const,
  )("a failure of the kind %s has the server's message, without paths", async (failure, words) => {
    await using backend = new FakeA1111({ failure });
    await using app = await openTestApp();
    await useBackend(app, "a1111", backend.url);
    const error = await errorOf(await app.post("/api/image/generate", { prompt: "a fox" }));
    expect(error).toMatchObject({ status: 502, code: "upstream_error" });
    expect(error.message).toContain(words);
    expect(error.message).not.toContain("/home/");
  });

  test("a run without progress times out and is stopped on the server", async () => {
    await using backend = new FakeA1111({ isManual: true });
    await using app = await openTestApp({ imageLimits: { pollMs: 20, idleMs: 1_500 } });
    await useBackend(app, "a1111", backend.url);
    const error = await errorOf(await app.post("/api/image/generate", { prompt: "a fox" }));
    expect(error).toMatchObject({ status: 504, code: "upstream_timeout" });
    await expect.poll(() => backend.interruptions).toBe(1);
  });

  test("another client's image is neither shown nor stopped; a cancelled one behind it is stopped on its turn", async () => {
    await using backend = new FakeA1111({ isManual: true });
    await using app = await openTestApp();
    await useBackend(app, "a1111", backend.url);
    const foreign = fetch(`${backend.url}/sdapi/v1/txt2img`, { method: "POST", body: '{"steps":8,"seed":1}' });
    await backend.begun();
    const answer = await app.post("/api/image/generate", { prompt: "a fox" }, EVENTS);
    await until(() => backend.orders.length === 2, "our order");
    backend.step(4);
    const looks = () => backend.requests.filter(({ path }) => path.endsWith("/progress")).length;
    const before = looks();
    await until(() => looks() > before + 2, "looks at the progress");
    await app.post(`/api/jobs/${answer.headers.get("x-parlor-job-id")}/cancel`);
    expect(backend.interruptions).toBe(0);
    expect((await eventsOf(answer)).map(([event]) => event)).toEqual(["job", "error"]);
    backend.go();
    await (await foreign).body?.cancel();
    // Ours waits in the server's queue and is stopped when it's next.
    await until(() => backend.interruptions === 1 && backend.isIdle, "the end of our picture");
  });

  test("a picture to begin from goes along, stored once", async () => {
    await using backend = new FakeA1111();
    await using app = await openTestApp();
    await useBackend(app, "a1111", backend.url);
    await putPicture(app, "begin.png", picture(5));
    await app.post("/api/image/generate", { prompt: "a fox", init_image: "begin.png" });
    await app.post("/api/image/generate", { prompt: "a fox", init_image: dataUrl(picture(5)) });
    for (const order of backend.orders) expect(order.init_images).toEqual([dataUrl(picture(5)).split(",")[1]]);
    expect(backend.requests.filter(({ path }) => path.endsWith("/img2img"))).toHaveLength(2);
  });

  test("a response of forty megabytes is read", async () => {
    await using backend = new FakeA1111({ paddingBytes: 40_000_000 });
    await using app = await openTestApp();
    await useBackend(app, "a1111", backend.url);
    expect((await app.post("/api/image/generate", { prompt: "a fox" })).status).toBe(200);
  });
});

describe("ComfyUI", () => {
  test("the starter workflow gets typed values, and the first checkpoint where none was chosen", async () => {
    await using backend = new FakeComfy();
    await using app = await openTestApp();
    await useBackend(app, "comfyui", backend.url, { defaults: { steps: 12, cfg_scale: 4.5 } });
    const prompt = 'a "fox", 100% %seed% \\ {"x":1}';
    await app.post("/api/image/generate", { prompt, negative_prompt: "wolf", seed: 11 });
    const { workflow } = backend.jobs[0]!;
    expect(workflow["3"]!.inputs).toMatchObject({ seed: 11, steps: 12, cfg: 4.5, denoise: 1, sampler_name: "euler" });
    expect(workflow["4"]!.inputs.ckpt_name).toBe("tiny.safetensors");
    expect(workflow["5"]!.inputs).toMatchObject({ width: 512, height: 512 });
    expect([workflow["6"]!.inputs.text, workflow["7"]!.inputs.text]).toEqual([prompt, "wolf"]);
  });

  test("gives every image its own seed unless the request has one", async () => {
    await using backend = new FakeComfy();
    await using app = await openTestApp();
    await useBackend(app, "comfyui", backend.url);
    for (let i = 0; i < 3; i++) await app.post("/api/image/generate", { prompt: "a fox" });
    expect(new Set(backend.jobs.map(({ workflow }) => workflow["3"]!.inputs.seed)).size).toBe(3);
  });

  test("inputs that the server rejects become readable issues, without tracebacks", async () => {
    await using backend = new FakeComfy();
    await using app = await openTestApp();
    await useBackend(app, "comfyui", backend.url, { checkpoint: "gone.safetensors" });
    const error = await errorOf(await app.post("/api/image/generate", { prompt: "a fox" }));
    expect(error).toMatchObject({ status: 422, code: "unprocessable" });
    expect(error.issues).toEqual([{
      path: "4.inputs.ckpt_name",
      message: `"Checkpoint" (node 4): the checkpoint "gone.safetensors" isn't installed on the image server`,
    }]);
    expect(JSON.stringify(error)).not.toContain("/home/");
  });

  test.each(
    [
      ["the socket is silent", { socket: "silent" }],
      ["the socket is refused", { socket: "refused" }],
      ["other programs and runs talk in between", { isNoisy: true }],
      ["its history is written late", { historyLagLooks: 2 }],
      ["a node list of the newer form", { hasComboForm: true }],
    ] as const,
  )("a picture comes although or while %s", async (_what, switches) => {
    await using backend = new FakeComfy(switches);
    await using app = await openTestApp();
    await useBackend(app, "comfyui", backend.url);
    const { images } = await (await app.post("/api/image/generate", { prompt: "a fox", seed: 3 })).json();
    expect(await (await app.get(images[0].url)).bytes()).toEqual(picture(3));
  });

  test("a socket that breaks midway loses progress, not the image", async () => {
    await using backend = new FakeComfy({ isManual: true, socket: "drop" });
    await using app = await openTestApp();
    await useBackend(app, "comfyui", backend.url);
    const asked = app.post("/api/image/generate", { prompt: "a fox" });
    await backend.begun();
    backend.step(1, 4);
    backend.go();
    expect((await asked).status).toBe(200);
  });

  test.each([["temp", 1], ["both", 1]] as const)(
    "of pictures of the kind %s those that are kept come",
    async (pictures, count) => {
      await using backend = new FakeComfy({ pictures });
      await using app = await openTestApp();
      await useBackend(app, "comfyui", backend.url);
      const { images } = await (await app.post("/api/image/generate", { prompt: "a fox", seed: 20 })).json();
      expect(images).toHaveLength(count);
      expect(await (await app.get(images[0].url)).bytes()).toEqual(picture(pictures === "both" ? 21 : 20));
    },
  );

  test.each(
    [
      [
        "fails in a node",
        { failure: "Can't load /home/someone/x.pt\nmore" },
        /"Sampler" \(node 3\): Can't load …\/x\.pt$/,
      ],
      ["makes no picture", { pictures: "none" }, /returned no image/],
      ["is forgotten", { forgets: true }, /lost the image/],
    ] as const,
  )("a run that %s is a 502 that says so", async (_what, switches, words) => {
    await using backend = new FakeComfy(switches);
    await using app = await openTestApp();
    await useBackend(app, "comfyui", backend.url);
    const error = await errorOf(await app.post("/api/image/generate", { prompt: "a fox" }));
    expect(error).toMatchObject({ status: 502, code: "upstream_error" });
    expect(error.message).toMatch(words);
  });

  test("a run that was interrupted on the server is reported as such", async () => {
    await using backend = new FakeComfy({ isManual: true });
    await using app = await openTestApp();
    await useBackend(app, "comfyui", backend.url);
    const asked = app.post("/api/image/generate", { prompt: "a fox" });
    await backend.begun();
    await fetch(`${backend.url}/interrupt`, { method: "POST" });
    expect((await errorOf(await asked)).message).toContain("stopped on the image server");
  });

  test.each(["new", "old"] as const)(
    "another client's run on a server of the %s dialect isn't stopped",
    async (dialect) => {
      await using backend = new FakeComfy({ isManual: true, dialect });
      await using app = await openTestApp();
      await useBackend(app, "comfyui", backend.url);
      backend.addForeignRun();
      await backend.begun();
      const answer = await app.post("/api/image/generate", { prompt: "a fox" }, EVENTS);
      await until(() => backend.jobs.length === 2, "our run");
      await app.post(`/api/jobs/${answer.headers.get("x-parlor-job-id")}/cancel`);
      expect(backend.interrupted).toEqual([]);
      expect((await eventsOf(answer)).at(-1)![0]).toBe("error");
      backend.go();
      await until(() => backend.isIdle, "an empty queue");
      expect(backend.jobs).toHaveLength(2);
    },
  );

  test("omitted inputs and unfilled placeholders of a workflow are reported with the image", async () => {
    await using backend = new FakeComfy({ isPartlyRefused: true });
    await using app = await openTestApp();
    await app.put("/api/image/workflows/mine", {
      "3": { class_type: "KSampler", inputs: { seed: "%seed%", lora: "%my_lora%" } },
    });
    await useBackend(app, "comfyui", backend.url, { workflow_id: "mine" });
    const { warnings } = await (await app.post("/api/image/generate", { prompt: "a fox" })).json();
    expect(warnings).toEqual([
      expect.stringContaining("the input images is missing"),
      expect.stringContaining("%my_lora%"),
    ]);
  });

  test("a source image is uploaded and used by the name the server returns", async () => {
    await using backend = new FakeComfy();
    await using app = await openTestApp();
    await app.put("/api/image/workflows/from", {
      "3": { class_type: "KSampler", inputs: { seed: "%seed%", denoise: "%denoise%" } },
      "10": { class_type: "LoadImage", inputs: { image: "%init_image%" } },
    });
    await useBackend(app, "comfyui", backend.url);
    const body = { prompt: "a fox", init_image: dataUrl(picture(5)) };
    expect(await errorOf(await app.post("/api/image/generate", body))).toMatchObject({ status: 422 });
    expect((await app.post("/api/image/generate", { ...body, workflow_id: "from" })).status).toBe(200);
    const { workflow } = backend.jobs[0]!;
    expect(workflow["10"]!.inputs.image).toBe(backend.uploads[0]);
    expect(workflow["3"]!.inputs.denoise).toBe(0.75);
  });
});
