/** Selects a chat and whether something applies to it. */
import type { ConversationHead, ConversationPatch } from "../../api/types.ts";
import { useEffect, useState } from "preact/hooks";
import { type ApiError, asApiError } from "../../api/client.ts";
import { ErrorNote } from "../../components/Notice.tsx";
import { Select, Switch } from "../../components/forms/inputs.tsx";
import { useStore } from "../../state/store.ts";
import { nameChat } from "../shell/chat_name.ts";

/** A select of chats. */
export function ChatSelect(
  { label, none, value, onChange }: { label: string; none: string; value: string; onChange: (id: string) => void },
) {
  const { chats, people } = useStore();
  const shown = chats.shown.value;
  useEffect(() => people.wantFaces(shown.flatMap((chat) => chat.character_ids)), [shown]);
  const options = [
    { value: "", name: none },
    ...shown.map((chat) => ({ value: chat.id, name: nameChat(people, chat).whole })),
  ];
  return <Select label={label} value={value} options={options} onChange={onChange} />;
}

/** The chat, and a switch once it is selected. */
export function ChatPicker(
  { label, none, linkLabel, failed, isLinked, changesFor }: {
    label: string;
    none: string;
    linkLabel: string;
    failed: string;
    isLinked: (chat: ConversationHead) => boolean;
    changesFor: (chat: ConversationHead, isOn: boolean) => ConversationPatch;
  },
) {
  const store = useStore();
  const [id, setId] = useState("");
  const [chat, setChat] = useState<ConversationHead>();
  const [error, setError] = useState<ApiError>();
  const read = () => {
    setChat(undefined);
    setError(undefined);
    if (id === "") return;
    let isWanted = true;
    store.api.getHead(id).then(
      (head) => isWanted && setChat(head),
      (thrown) => isWanted && setError(asApiError(thrown)),
    );
    return () => void (isWanted = false);
  };
  useEffect(read, [id]);
  const change = (head: ConversationHead, isOn: boolean) => {
    store.api.changeConversation(head.id, changesFor(head, isOn)).then(setChat, (thrown) => store.report(thrown));
  };
  return (
    <div class="chat-link">
      <ChatSelect label={label} none={none} value={id} onChange={setId} />
      {error && <ErrorNote title={failed} error={error} onRetry={read} />}
      {chat && <Switch label={linkLabel} isOn={isLinked(chat)} onChange={(isOn) => change(chat, isOn)} />}
    </div>
  );
}
