/** WebKit as an engine of the flows, driven by W3C WebDriver: JSON over HTTP. */
import { fileURLToPath } from "node:url";
import { type Driver, type Engine, type EngineOptions, SIZES, Tab } from "./engine.ts";

const SCRIPT = fileURLToPath(new URL("../../tools/webkit.sh", import.meta.url));

/** Keys of WebDriver that aren't characters. @see https://www.w3.org/TR/webdriver/#keyboard-actions */
const KEYS: Record<string, string> = {
  ...{ Backspace: "\uE003", Tab: "\uE004", Enter: "\uE007", Shift: "\uE008", Control: "\uE009", Alt: "\uE00A" },
  ...{ Escape: "\uE00C", PageUp: "\uE00E", PageDown: "\uE00F", End: "\uE010", Home: "\uE011" },
  ...{ ArrowLeft: "\uE012", ArrowUp: "\uE013", ArrowRight: "\uE014", ArrowDown: "\uE015", Delete: "\uE017" },
};

/**
 * Starts a browser on a screen of its own.
 *
 * @param installed The folder that was given to `webkit.sh install`.
 */
export async function openWebkit(installed: string, options: EngineOptions = {}): Promise<Engine> {
  const { size = SIZES.desktop, isDark = false } = options;
  const folder = await Deno.makeTempDir({ prefix: "wk" });
  const run = async (args: string[], env: Record<string, string> = {}) => {
    const { success, stdout, stderr } = await new Deno.Command("bash", { args: [SCRIPT, ...args], env }).output();
    if (!success) throw new Error(`webkit.sh ${args[0]} failed: ${new TextDecoder().decode(stderr)}`);
    return new TextDecoder().decode(stdout).trim();
  };
  const stop = async () => {
    await run(["stop", folder]);
    await Deno.remove(folder, { recursive: true });
  };
  try {
    const url = await run(
      ["start", installed, folder, `${size.width}x${size.height}`],
      isDark ? { GTK_THEME: "Adwaita:dark" } : {},
    );
    const browserOptions = { binary: `${installed}/browser`, args: ["--automation"] };
    const alwaysMatch = { browserName: "MiniBrowser", "webkitgtk:browserOptions": browserOptions };
    const { sessionId } = await send<{ sessionId: string }>(`${url}/session`, "POST", {
      capabilities: { alwaysMatch },
    });
    const session = `${url}/session/${sessionId}`;
    await send(`${session}/timeouts`, "POST", { script: 120_000, pageLoad: 120_000 });
    let [front] = await send<string[]>(`${session}/window/handles`, "GET");
    let isFirst = true;
    return {
      name: "webkit",
      async newTab() {
        if (!isFirst) {
          front = (await send<{ handle: string }>(`${session}/window/new`, "POST", { type: "tab" })).handle;
          await send(`${session}/window`, "POST", { handle: front });
        }
        isFirst = false;
        return new Tab(driveWindow(session, front!, folder));
      },
      async [Symbol.asyncDispose]() {
        await send(session, "DELETE").catch(() => {}); // The browser may be gone.
        await stop();
      },
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

function driveWindow(session: string, handle: string, folder: string): Driver {
  const act = (...sources: unknown[]) => send(`${session}/actions`, "POST", { actions: sources });
  const pointer = (...actions: unknown[]) =>
    act({ type: "pointer", id: "mouse", parameters: { pointerType: "mouse" }, actions });
  const moveTo = (x: number, y: number) => ({
    ...{ type: "pointerMove", duration: 0, origin: "viewport" },
    ...{ x: Math.round(x), y: Math.round(y) },
  });
  /** WebKit's driver takes a wheel's distance for its position: only what differs from the last one is scrolled. */
  let wheeled = 0;
  const keys = (actions: unknown[]) => act({ type: "key", id: "keyboard", actions });
  return {
    goto: async (url) => void await send(`${session}/url`, "POST", { url }),
    async evaluate(source, args) {
      const script = `const done = arguments[arguments.length - 1];
        Promise.resolve().then(() => (${source})(...arguments[0]))
          .then((value) => done({ value }), (error) => done({ error: error + " " + error?.stack }));`;
      const answer = await send<{ value?: unknown; error?: string }>(`${session}/execute/async`, "POST", {
        script,
        args: [args],
      });
      if (answer.error !== undefined) throw new Error(answer.error);
      return answer.value;
    },
    click: async (x, y) =>
      void await pointer(moveTo(x, y), { type: "pointerDown", button: 0 }, { type: "pointerUp", button: 0 }),
    move: async (x, y) => void await pointer(moveTo(x, y)),
    async wheel(x, y, deltaY) {
      wheeled += deltaY;
      await act({
        ...{ type: "wheel", id: "wheel" },
        actions: [{ ...moveTo(x, y), type: "scroll", deltaX: 0, deltaY: wheeled }],
      });
    },
    async press(...pressed) {
      const values = pressed.map((key) => KEYS[key] ?? key);
      await keys([
        ...values.map((value) => ({ type: "keyDown", value })),
        ...values.toReversed().map((value) => ({ type: "keyUp", value })),
      ]);
    },
    async type(text) {
      await keys([...text].flatMap((value) => [{ type: "keyDown", value }, { type: "keyUp", value }]));
    },
    front: async () => void await send(`${session}/window`, "POST", { handle }),
    async screenshot() {
      // The driver's own picture can hang.
      const script = "import sys; from PIL import ImageGrab; ImageGrab.grab(xdisplay=sys.argv[1]).save(sys.argv[2])";
      const path = `${folder}/screen.png`;
      const screen = `:${(await Deno.readTextFile(`${folder}/screen`)).trim()}`;
      await new Deno.Command("python3", { args: ["-c", script, screen, path] }).output();
      return await Deno.readFile(path);
    },
    async close() {
      await send(`${session}/window`, "POST", { handle });
      await send(`${session}/window`, "DELETE");
    },
  };
}

async function send<T = unknown>(url: string, method: string, body?: unknown): Promise<T> {
  const response = await fetch(url, { method, body: body === undefined ? undefined : JSON.stringify(body) });
  const { value } = await response.json();
  if (!response.ok) throw new Error(`${method} ${url.replace(/.*session\/[^/]*/, "")}: ${JSON.stringify(value)}`);
  return value as T;
}
