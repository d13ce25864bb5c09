/** What a running reply is doing while no text comes. */
import { useNow } from "../../../components/hooks.ts";
import type { ReplyRun } from "../../../state/chat/running_reply.ts";
import { clock } from "../../../texts/times.ts";
import { texts } from "../../../texts/texts.ts";

/** Waiting with its clock, or a lost line. Spoken by the announcer, not from here. */
export function ReplyProgress({ run }: { run: ReplyRun }) {
  const phase = run.phase.value;
  const isWaiting = phase === "waiting" || phase === "sending";
  const now = useNow(isWaiting);
  if (phase === "reconnecting") return <p class="reply-state warning">{texts.chat.reconnecting}</p>;
  if (!isWaiting) return null;
  return (
    <p class="reply-state">
      <span class="pulse" aria-hidden="true" />
      {texts.chat.waiting(clock(now - run.startedAtMs))}
    </p>
  );
}
