/** What a reply did before its last text: texts of earlier rounds, and the calls of tools behind each. */
import { useMemo } from "preact/hooks";
import type { Message } from "../../../api/types.ts";
import { Markdown } from "../../../components/content/Markdown.tsx";
import { splitReasoning } from "../../../state/chat/message_text.ts";
import type { OpenChat } from "../../../state/chat/open_chat.ts";
import type { ReplyStream } from "../../../state/chat/reply_stream.ts";
import { readRounds, splitAtCalls } from "../../../state/chat/tool_messages.ts";
import { Reasoning } from "./Reasoning.tsx";
import { ToolCallCard } from "./ToolCallCard.tsx";

/** The rounds of a running reply, or those of stored messages. */
export function ToolRounds(
  { chat, message, run, rounds: stored = [] }: {
    chat: OpenChat;
    /** The reply. */
    message: Message;
    run?: ReplyStream;
    rounds?: readonly Message[];
  },
) {
  const calls = run?.calls.value;
  // The text before a call doesn't change, so its growth behind the last one renders nothing here.
  const rounds = useMemo(
    () => run && calls ? splitAtCalls(calls, run.text.peek(), run.reasoning.peek()) : readRounds(stored),
    [run, calls, ...run ? [] : stored],
  );
  return (
    <>
      {rounds.map(({ text, reasoning, calls }, n) => {
        const { thoughts, said } = splitReasoning(text);
        const thought = [reasoning, thoughts].filter((part) => part !== "").join("\n\n");
        return (
          <div key={n} class="tool-round">
            {thought !== "" && (
              <Reasoning text={thought} isThinking={false} durationMs={undefined} tokens={undefined} />
            )}
            {said !== "" && <Markdown text={said} isFinal />}
            {calls.map((call) => (
              <ToolCallCard key={call.id} chat={chat} replyId={message.id} call={call} isLive={run !== undefined} />
            ))}
          </div>
        );
      })}
    </>
  );
}
