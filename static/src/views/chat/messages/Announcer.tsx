/** Reads a running reply out sentence by sentence. */
import { useEffect, useState } from "preact/hooks";
import { Sentences } from "../../../markdown/sentences.ts";
import { partThoughts } from "../../../state/chat/message_text.ts";
import type { OpenChat } from "../../../state/chat/open_chat.ts";
import { texts } from "../../../texts/texts.ts";

/** Sentences that stay in the page; older ones have been read. */
const KEPT = 6;

/** A hidden region; the message list itself is silent, since it changes with every token. */
export function Announcer({ chat }: { chat: OpenChat }) {
  const [lines, setLines] = useState<{ id: number; text: string }[]>([]);
  const run = chat.run.value;
  useEffect(() => {
    if (!run) return;
    let nextId = Date.now();
    const say = (text: string) => {
      if (text !== "") setLines((before) => [...before, { id: nextId++, text }].slice(-KEPT));
    };
    // Thoughts are folded away for those who look, too.
    const said = () => partThoughts(run.text.peek()).said;
    const sentences = new Sentences(said());
    const endPhase = run.phase.subscribe((phase) => {
      if (phase === "waiting") say(texts.chat.waitingPlain);
      if (phase === "reconnecting") say(texts.chat.reconnecting);
    });
    const endText = run.text.subscribe(() => say(sentences.next(said(), false)));
    return () => {
      endText();
      endPhase();
      say(sentences.next(said(), true));
      say(texts.chat.replyDone);
    };
  }, [run]);
  return (
    <div class="visually-hidden" aria-live="polite" aria-relevant="additions">
      {lines.map((line) => <p key={line.id}>{line.text}</p>)}
    </div>
  );
}
