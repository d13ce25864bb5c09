/** A notice above the screen: asks once whether the model may propose notes, and links to new proposals. */
import { memoryApi } from "../../api/memories.ts";
import { Button, LinkButton } from "../../components/Button.tsx";
import { useStore } from "../../state/store.ts";
import { texts } from "../../texts/texts.ts";
import { useResource } from "../hooks.tsx";

/** The question. The setting is off until it is answered with Yes. */
export function MemoryQuestion() {
  const store = useStore();
  const t = texts.memory;
  const answer = (memory_proposals: boolean) =>
    void store.preferences.change({ memory_proposals, memory_asked: true }).catch((thrown) => store.report(thrown));
  return (
    <div class="memory-question" role="status">
      <p>{t.question}</p>
      <div class="actions-row">
        <Button onClick={() => answer(true)}>{t.yes}</Button>
        <Button kind="quiet" onClick={() => answer(false)}>{t.no}</Button>
      </div>
    </div>
  );
}

/** A link to the inbox with its count. Nothing while it is empty. */
export function MemoryInboxLink() {
  const store = useStore();
  const { value } = useResource(() => memoryApi(store.api.client).listProposals(), "memory_proposal");
  if (!value || value.length === 0 || store.router.path.value === "/settings/memory") return null;
  return (
    <div class="memory-question" role="status">
      <LinkButton kind="quiet" icon="bulb" href="/settings/memory">{texts.memory.inbox(value.length)}</LinkButton>
    </div>
  );
}
