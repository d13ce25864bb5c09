/** Failures of the fake model server, before and during its response. */
import type { FakeAnswer, RecordedRequest } from "./fake_llm_http.ts";
import type { FakeStream, FakeSwitches } from "./fake_llm_stream.ts";

const PAGE = "<!doctype html><html><head><title>502 Bad Gateway</title></head><body>nginx</body></html>";

/**
 * Fails before a stream begins, when the switches say so.
 *
 * @returns True when the request has been answered.
 */
export async function answerFailure(
  request: RecordedRequest,
  answer: FakeAnswer,
  switches: FakeSwitches,
  headers: Record<string, string>,
): Promise<boolean> {
  const more = { ...headers, "retry-after": switches.retry_after };
  const message = withKey(switches.message, request);
  switch (switches.fail) {
    case "status_json":
      await answer.json(switches.status, { error: { message, type: "server_error", code: switches.status } }, more);
      return true;
    case "status_text":
      await answer.send(switches.status, "text/plain", message, more);
      return true;
    case "status_empty":
      await answer.send(switches.status, "text/plain", "", more);
      return true;
    case "html":
      await answer.send(502, "text/html", PAGE, more);
      return true;
    case "html200":
      await answer.send(200, switches.type === "text/event-stream" ? "text/html" : switches.type, PAGE, headers);
      return true;
    case "json200":
      await answer.json(200, { error: { message } }, headers);
      return true;
    case "no_answer":
      answer.cut();
      return true;
    default:
      return false;
  }
}

/** Fails inside a stream, after what has been sent. */
export async function failInStream(answer: FakeAnswer, stream: FakeStream, switches: FakeSwitches): Promise<void> {
  const { message } = switches;
  switch (switches.fail) {
    case "frame_object":
      await stream.write(stream.frame(JSON.stringify({ error: { message, type: "server_error", code: 500 } })));
      break;
    case "frame_string":
      await stream.write(stream.frame(JSON.stringify({ error: message })));
      break;
    case "event_error":
      await stream.write(stream.frame(JSON.stringify({ error: { message }, message }), "error"));
      break;
    case "error_field":
      await stream.write(`error: ${JSON.stringify({ code: 500, message, type: "server_error" })}\n\n`);
      break;
    case "choice_error": {
      const choices = [{ index: 0, delta: { content: "" }, finish_reason: "error", error: { code: 502, message } }];
      await stream.write(stream.frame(JSON.stringify({ choices })));
      break;
    }
    case "cut":
      return answer.cut();
    case "rst":
      return answer.reset();
    case "stall":
      return; // Never ends; the client has to disconnect.
    case "silent_end": // a regular end of the body, as Ollama does in the middle
      break;
    default:
      throw new Error(`"${switches.fail}" is no failure inside a stream`);
  }
  // vLLM and LocalAI go on to the end mark, llama.cpp and TabbyAPI close without it.
  if (switches.end === "done" && switches.fail !== "silent_end") await stream.write(stream.frame("[DONE]"));
  await answer.end();
}

function withKey(message: string, request: RecordedRequest): string {
  const key = request.headers.get("authorization")?.replace(/^Bearer /, "") ?? request.headers.get("x-api-key") ?? "";
  return message.replaceAll("$KEY", key);
}
