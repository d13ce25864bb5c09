/** The right panels of a chat. Loaded when first opened. */
import { lazy } from "../../../components/Lazy.tsx";
import { type Store, useStore } from "../../../state/store.ts";
import { texts } from "../../../texts/texts.ts";
import type { OpenChat } from "../../../state/chat/open_chat.ts";
import type { ComponentType } from "preact";

/** The panels. */
export type ChatPanel = "options" | "preview" | "history" | "recall" | "files";

const VIEWS: Record<ChatPanel, ComponentType<{ chat: OpenChat; anchor?: string }>> = {
  options: lazy(() => import("./OptionsPanel.tsx").then(({ OptionsPanel }) => OptionsPanel)),
  preview: lazy(() => import("./PreviewPanel.tsx").then(({ PreviewPanel }) => PreviewPanel)),
  history: lazy(() => import("./HistoryPanel.tsx").then(({ HistoryPanel }) => HistoryPanel)),
  files: lazy(() => import("./FilesPanel.tsx").then(({ FilesPanel }) => FilesPanel)),
  recall: lazy(() => import("./RecallPanel.tsx").then(({ RecallPanel }) => RecallPanel)),
};

/** Opens a panel of the open chat. @param anchor Id of the heading to show. */
export function openChatPanel(store: Store, id: ChatPanel, anchor?: string): void {
  store.openPanel({ id, title: texts.chat[id].title, view: () => <OfOpenChat id={id} anchor={anchor} /> });
}

function OfOpenChat({ id, anchor }: { id: ChatPanel; anchor: string | undefined }) {
  const chat = useStore().chat.value;
  const View = VIEWS[id];
  const state = chat?.load.value.kind;
  // Fields begin with what is stored, and typing into them would replace what isn't known yet.
  if (state === "loading") return <p class="muted" role="status">{texts.loading}</p>;
  return chat && state === "ready" ? <View key={chat.id} chat={chat} anchor={anchor} /> : null;
}
