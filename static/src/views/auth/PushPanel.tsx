/** Notification settings: this device, other devices, and the owner's notification server. */
import { useEffect, useState } from "preact/hooks";
import { pushApi } from "../../api/push.ts";
import type { NotifyServer, PushDevice } from "../../api/types.ts";
import { Drafted, useFormDraft } from "../../components/forms/Drafted.tsx";
import { Button } from "../../components/Button.tsx";
import { ErrorNote, Notice } from "../../components/Notice.tsx";
import { TextField } from "../../components/forms/Field.tsx";
import { Select } from "../../components/forms/inputs.tsx";
import { List, ListRow } from "../../components/lists/List.tsx";
import { type ApiError, asApiError } from "../../api/client.ts";
import { findStorage } from "../../state/app/device.ts";
import { requestNotifications } from "../../state/app/notifications.ts";
import { deviceName } from "../../state/app/passkeys.ts";
import { canPush, findPushId, reportPresence, subscribe, unsubscribe } from "../../state/app/push.ts";
import { useStore } from "../../state/store.ts";
import { formatTime } from "../../texts/format.ts";
import { texts } from "../../texts/texts.ts";
import { useAction, useList } from "../hooks.tsx";

/** Renders the notification settings. */
export function PushPanel() {
  const store = useStore();
  const t = texts.push;
  const [api] = useState(() => pushApi(store.api.client));
  const storage = findStorage(globalThis.window);
  const { items, note, refresh } = useList(() => api.listDevices());
  const [isRefused, setRefused] = useState(false);
  const own = items?.find(({ id }) => id === findPushId(storage));
  const { isBusy, failure, run } = useAction(async () => {
    if (own) await unsubscribe(api, storage);
    else {
      const isAllowed = await requestNotifications();
      setRefused(!isAllowed);
      if (!isAllowed) return;
      await subscribe(api, storage, deviceName(globalThis.navigator.userAgent));
    }
    await refresh();
  });
  const remove = async ({ id }: PushDevice) => {
    try {
      if (id === own?.id) await unsubscribe(api, storage);
      else await api.removeDevice(id);
    } catch (thrown) {
      store.report(thrown);
    }
    await refresh();
  };
  return (
    <div class="settings-part">
      <h4 id="push" tabIndex={-1}>{t.title}</h4>
      <p class="muted">{t.text}</p>
      {note}
      {!canPush(globalThis.window) ? <p class="hint">{t.impossible}</p> : (
        <>
          {isRefused && <p class="field-error" role="alert">{texts.general.notifyRefused}</p>}
          {failure !== undefined && <p class="field-error" role="alert">{failure}</p>}
          {items !== undefined && (
            <div class="actions-row">
              <Button isBusy={isBusy} onClick={() => void run()}>{own ? t.turnOff : t.turnOn}</Button>
            </div>
          )}
        </>
      )}
      {items !== undefined && items.length > 0 && (
        <List label={t.devices}>
          {items.map((item) => (
            <ListRow
              key={item.id}
              title={item.id === own?.id ? t.thisDevice(item.label) : item.label}
              text={t.facts(item.vendor, formatTime(item.created_at, new Date()))}
              end={
                <Button kind="quiet" label={t.removeOf(item.label)} onClick={() => void remove(item)}>
                  {t.remove}
                </Button>
              }
            />
          ))}
        </List>
      )}
      <NotifyServerForm api={api} />
    </div>
  );
}

function NotifyServerForm({ api }: { api: ReturnType<typeof pushApi> }) {
  const store = useStore();
  const t = texts.push;
  const [stored, setStored] = useState<NotifyServer>();
  const [error, setError] = useState<ApiError>();
  const [kind, setKind] = useState<NotifyServer["kind"]>("ntfy");
  const [url, setUrl] = useState("");
  const [token, setToken] = useState("");
  const draft = useFormDraft("notify_server");
  const show = (server: NotifyServer) => {
    setStored(server);
    setKind(server.kind);
    setUrl(server.url ?? "");
    setToken("");
  };
  const read = () => void api.getServer().then(show, (thrown) => setError(asApiError(thrown)));
  useEffect(read, []);
  const save = useAction(async () => {
    show(await api.putServer({ kind, url: url.trim() || null, ...(token.trim() && { token: token.trim() }) }));
    draft.clear();
    const storage = findStorage(globalThis.window);
    reportPresence(api, storage, findPushId(storage));
    store.toasts.show(texts.push.saved);
  });
  const test = useAction(async () => {
    await api.testServer();
    store.toasts.show(texts.push.sent);
  });
  if (error) {
    return <ErrorNote title={texts.privacy.loadFailed} error={error} onRetry={() => (setError(undefined), read())} />;
  }
  if (stored === undefined) return null;
  return (
    <form
      class="form"
      onSubmit={(event) => {
        event.preventDefault();
        void save.run();
      }}
    >
      <h4>{t.server}</h4>
      <p class="muted">{t.serverText}</p>
      {stored.held && <Notice tone="info">{t.held}</Notice>}
      <Drafted draft={draft}>
        <Select
          label={t.kind}
          value={kind}
          options={[{ value: "ntfy", name: "ntfy" }, { value: "gotify", name: "Gotify" }]}
          onChange={setKind}
        />
        <TextField
          id="push-url"
          label={kind === "ntfy" ? t.topicUrl : t.serverUrl}
          type="url"
          placeholder={kind === "ntfy" ? "https://ntfy.sh/your-topic" : "https://gotify.example.org"}
          value={url}
          onInput={setUrl}
          error={save.failure}
        />
        <TextField
          label={t.token}
          type="password"
          autocomplete="new-password"
          hint={stored.has_token ? t.tokenSaved : undefined}
          value={token}
          onInput={setToken}
        />
      </Drafted>
      {test.failure !== undefined && <p class="field-error" role="alert">{test.failure}</p>}
      <div class="actions-row">
        <Button type="submit" isBusy={save.isBusy}>{t.save}</Button>
        {stored.url !== null && <Button isBusy={test.isBusy} onClick={() => void test.run()}>{t.test}</Button>}
      </div>
    </form>
  );
}
