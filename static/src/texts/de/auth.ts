/** Texts of signing in, pairing, access, the first setup and the tailnet node. */
import type { auth as English } from "../en/auth.ts";

/** German. */
export const auth: typeof English = {
  access: {
    signIn: "Bei Parlor anmelden",
    signInText: (host: string) => `Verwenden Sie Ihren Passkey für ${host}.`,
    usePasskey: "Mit Passkey anmelden",
    haveCode: "Ich habe einen Code",
    haveCodeHint: "Um ein neues Gerät hinzuzufügen, holen Sie sich einen Code auf einem angemeldeten Gerät.",
    havePasskey: "Ich habe einen Passkey",

    pair: "Parlor mit einem Passkey schützen",
    pairText: (host: string) =>
      `Wer ${host} erreichen kann, kann Parlor derzeit benutzen. Erstellen Sie einen Passkey, damit eine Anmeldung nötig ist.`,
    pairCode: "Dieses Gerät hinzufügen",
    pairCodeText: (host: string) =>
      `Geben Sie den Code aus dem Terminal des Servers oder von einem angemeldeten Gerät ein und erstellen Sie dann einen Passkey für ${host}.`,
    name: "Gerätename",
    nameHint: "Damit Sie Ihre Passkeys unterscheiden können.",
    code: "Code",
    codeHint: "8 Buchstaben und Ziffern, z. B. 7K3M-QX2P. Jeder Code gilt einmal.",
    codeMissing: "Geben Sie zuerst den Code ein",
    create: "Passkey erstellen",
    later: "Nicht jetzt",
    deviceName: (browser: string, system: string) => `${browser} auf ${system}`,
    device: "Dieses Gerät",

    cancelled: "Die Passkey-Anfrage wurde abgebrochen oder hat zu lange gedauert.",
    known: "Dieses Gerät hat schon einen Passkey. Melden Sie sich damit an.",
    insecure: "Ihr Browser erlaubt unter dieser Adresse keine Passkeys.",

    unsupported: "Passkeys funktionieren unter dieser Adresse nicht",
    unsupportedAddress: "Browser erstellen Passkeys nur für Domainnamen, nicht für IP-Adressen.",
    useLocalhost: "Öffnen Sie Parlor auf diesem Rechner unter",
    unsupportedHttp: "Browser erstellen Passkeys nur über HTTPS oder auf localhost.",
    howTo: "So nutzen Sie Passkeys",
    wayTailnet: "Schalten Sie in den Einstellungen das Tailnet ein. Parlor erhält dann einen Namen mit HTTPS.",
    wayProxy: "Betreiben Sie einen HTTPS-Proxy wie Caddy vor Parlor und tragen Sie ihn in trusted_proxies ein.",
    wayCert: "Richten Sie auf dem Server ein TLS-Zertifikat ein: tls_cert und tls_key.",
    token: "Token",
    tokenHint: "Auf einem angemeldeten Gerät unter Einstellungen > Zugriff erstellen.",
    tokenWarning: "Über unverschlüsseltes HTTP kann jeder in diesem Netz das Token und Ihre Daten mitlesen.",
    useToken: "Mit Token anmelden",
    tokenWrong: "Ungültiges Token",

    cli: "Zugriff für die Kommandozeile erlauben?",
    cliText: (name: string) => `Die Kommandozeile auf ${name} möchte vollen Zugriff auf diesen Parlor-Server.`,
    cliWarning: "Erlauben Sie das nur, wenn Sie gerade parlor auth login ausgeführt haben.",
    cliAllow: "Erlauben",
    cliDeny: "Ablehnen",
    cliElsewhere: "Code für einen anderen Rechner anzeigen",
    cliCode: "Code für die Kommandozeile",
    cliCodeText: "Fügen Sie ihn innerhalb von zwei Minuten im Terminal ein.",
    cliBroken: "Dieser Link ist unvollständig. Kopieren Sie ihn noch einmal aus dem Terminal.",
    cliSignIn: "Melden Sie sich zuerst an, um die Kommandozeile freizugeben.",
  },

  push: {
    title: "Wenn Parlor geschlossen ist",
    text:
      "Die Benachrichtigungen laufen über den Hersteller Ihres Browsers, etwa Google (Chrome), Apple (Safari) oder " +
      "Mozilla (Firefox). Er erfährt, wann eine Antwort fertig ist oder Sie braucht, aber nicht, was darin steht oder " +
      "um welchen Chat es geht.",
    impossible:
      "Dieser Browser unterstützt das nur über HTTPS oder auf localhost. Fügen Sie Parlor auf dem iPhone oder iPad " +
      "zuerst zum Home-Bildschirm hinzu.",
    turnOn: "Für dieses Gerät einschalten",
    turnOff: "Für dieses Gerät ausschalten",
    removed: "Benachrichtigungen für dieses Gerät sind aus",
    devices: "Geräte mit Benachrichtigungen",
    thisDevice: (label: string) => `${label} (dieses Gerät)`,
    facts: (vendor: string, since: string) => `Über ${vendor} · seit ${since}`,
    remove: "Entfernen",
    removeOf: (label: string) => `${label} entfernen`,
    server: "ntfy oder Gotify",
    serverText: "Sie können Benachrichtigungen auch über Ihren eigenen Server erhalten. Er bekommt nur den Satz " +
      "„A reply is ready“ oder „A reply needs you“.",
    held: "Dieser Server stammt aus einem Import. Speichern Sie ihn, um Benachrichtigungen darüber zu erhalten.",
    kind: "Dienst",
    topicUrl: "Topic-URL",
    serverUrl: "Server-URL",
    token: "Token",
    tokenSaved: "Ein Token ist gespeichert. Lassen Sie das Feld leer, um es zu behalten.",
    save: "Speichern",
    saved: "Gespeichert",
    test: "Test senden",
    sent: "Gesendet",
  },

  privacy: {
    title: "Zugriff",
    here: "Dieser Browser",
    bySession: "Mit Passkey angemeldet.",
    byToken: "Mit Token angemeldet.",
    byLoopback: "Nicht angemeldet. Anfragen vom Rechner des Servers brauchen keine Anmeldung.",
    byGrace:
      "Nicht angemeldet. Diese Adresse hat noch keinen Passkey, daher kann jeder, der sie erreicht, Parlor benutzen.",
    byDisabled: "Nicht angemeldet. Die Anmeldung ist ausgeschaltet (require_auth = false).",
    signOut: "Abmelden",
    signIn: "Anmelden",
    loadFailed: "Die Liste konnte nicht geladen werden",

    passkeys: "Passkeys",
    passkeysText: "Auf Geräten mit Passkey melden Sie sich ohne Passwort an.",
    passkeysNone: "Noch keine Passkeys",
    addHere: "Passkey auf diesem Gerät hinzufügen",
    addDevice: "Weiteres Gerät hinzufügen",
    thisSession: "Aktuelle Sitzung",
    facts: (rpId: string, created: string) => `Für ${rpId} · erstellt ${created}`,
    lastUsed: (when: string) => `zuletzt benutzt ${when}`,
    neverUsed: "nie benutzt",
    revoke: "Widerrufen",
    revokeOf: (name: string) => `${name} widerrufen`,
    revokePasskey: (name: string) => `„${name}“ widerrufen?`,
    revokePasskeyText:
      "Er wird sofort ungültig, und seine Geräte werden abgemeldet. Das kann nicht rückgängig gemacht werden.",
    revokeOwn: "Sie sind mit diesem Passkey angemeldet und werden ebenfalls abgemeldet.",
    revoked: "Widerrufen",
    added: "Passkey erstellt",

    invite: "Weiteres Gerät hinzufügen",
    inviteText:
      "Öffnen Sie Parlor auf dem anderen Gerät und wählen Sie „Ich habe einen Code“, oder scannen Sie diesen QR-Code.",
    inviteLocal:
      "Öffnen Sie Parlor auf dem anderen Gerät unter seiner Netzwerkadresse und wählen Sie „Ich habe einen Code“.",
    inviteCode: "Code",
    inviteUntil: (when: string) => `Gilt einmal, bis ${when}.`,
    qr: "QR-Code mit Adresse und Code",

    tokens: "Tokens",
    tokensText:
      "Für Skripte, die Kommandozeile und Geräte ohne Passkeys. Hier erstellte Tokens gewähren vollen Zugriff.",
    tokensNone: "Noch keine Tokens",
    tokensSession: "Um Tokens zu erstellen, melden Sie sich zuerst mit einem Passkey an.",
    label: "Wofür ist dieses Token?",
    labelMissing: "Geben Sie zuerst einen Namen ein",
    mint: "Token erstellen",
    minted: (label: string) => `Token „${label}“`,
    mintedText: "Kopieren Sie es jetzt. Es wird nicht noch einmal angezeigt.",
    mintedQr: "Oder scannen Sie es auf dem Gerät, das es verwenden soll.",
    mintedDone: "Fertig",
    scopeOpenai: "nur OpenAI-kompatible API",
    tokenFacts: (created: string) => `Erstellt ${created}`,
    revokeToken: (label: string) => `„${label}“ widerrufen?`,
    revokeTokenText:
      "Alles, was dieses Token verwendet, verliert sofort den Zugriff. Das kann nicht rückgängig gemacht werden.",

    programs: "Aus anderen Programmen verwenden",
    programsText:
      "Programme, die die OpenAI-API verwenden, können mit Ihren Figuren und Modellen chatten. Parlor ergänzt Karte, Lorebooks und Preset.",
    baseUrl: "Basis-URL",
    program: "Programm",
    exampleOf: (program: string) => `Einstellungen für ${program}`,
    programModels: "Modelle: default, character:<ID> für eine Figur oder connection:<ID>/<Modell>.",
    mintForProgram: "Neues Token für diese API",
    grantsTitle: "Was das Token verwenden darf",
    grantsText:
      "Ein Token für diese API verwendet alle Figuren und Verbindungen, außer Sie wählen welche aus. Ihre Erinnerungen, Ihre Persona und Ihre Chats nur, wenn Sie es erlauben:",
    allCharacters: "Alle Figuren",
    chosenCharacters: "Nur diese Figuren",
    allConnections: "Alle Verbindungen",
    chosenConnections: "Nur diese Verbindungen",
    grants: {
      notes: "Ihre Erinnerungen",
      persona: "Ihre Persona und Ihr Name",
      write: "In vorhandene Chats schreiben",
    },
    onlyCharacters: (n: number) => `Figuren: ${n}`,
    onlyConnections: (n: number) => `Verbindungen: ${n}`,
  },

  welcome: {
    step: (at: number, of: number) => `Schritt ${at} von ${of}`,
    titles: { model: "Modell wählen", name: "Ihr Name", passkey: "Parlor mit einem Passkey schützen" },
    modelText: "Zum Chatten braucht Parlor ein Sprachmodell.",
    modelThere: (name: string) => `„${name}“ wird verwendet. Sie können das jederzeit in den Einstellungen ändern.`,
    nameHint:
      "So sprechen Figuren und Modelle Sie an. Der Name bleibt auf diesem Server und wird nur an Ihre Modelle gesendet.",
    passkeyLocal:
      "Auf diesem Rechner brauchen Sie keinen Passkey, auf anderen Geräten schon. Jede Adresse hat ihre eigenen Passkeys. Sie können jetzt einen für diese Adresse erstellen.",
    passkeyThere:
      "Diese Adresse hat schon einen Passkey. Weitere Geräte fügen Sie unter Einstellungen > Zugriff hinzu.",
    goOn: "Weiter",
    skip: "Überspringen",
    start: "Chat beginnen",
    container:
      "Parlor läuft in einem Container und sucht nur darin. Um auch auf dem Host zu suchen, setzen Sie diese Variable, wie compose.yaml es zeigt, und starten Sie den Container neu.",
    elsewhere: (hosts: string) =>
      `Parlor hat ${hosts} durchsucht. Gefunden werden nur Server, die Verbindungen von anderen Rechnern annehmen.`,
    listen: "Starten Sie ihn so:",
    listenNote: "Andere Rechner in Ihrem Netz können ihn dann ebenfalls erreichen.",
  },
  quickModel: {
    composeTitle: "Oder ein Modell in einem weiteren Container ausführen",
    compose:
      "Das Image von Parlor enthält kein llama-server. Fügen Sie diese Zeile in compose.yaml unter „services:“ ein, führen Sie docker compose up --detach aus und suchen Sie erneut. Der erste Start lädt das Modell herunter.",
    title: "Oder jetzt ein Modell herunterladen",
    text: (memory: string, disk: string) =>
      `Diese Modelle passen auf diesen Rechner mit ${memory} Arbeitsspeicher und ${disk} freiem Speicherplatz. Parlor führt das Modell für Sie aus.`,
    none: (memory: string, disk: string) =>
      `Dieser Rechner hat ${memory} Arbeitsspeicher und ${disk} freien Speicherplatz. Die Modelle, die Parlor vorschlägt, brauchen mehr. Nutzen Sie einen Server auf einem anderen Rechner.`,
    failed: "Die Suche nach Modellen für diesen Rechner ist fehlgeschlagen",
    levels: { fast: "Schnell", balanced: "Ausgewogen", best: "Beste Qualität" },
    memory: (size: string) => `braucht ${size} Arbeitsspeicher`,
    speed: (words: string) => `etwa ${words} Wörter pro Sekunde`,
    starting: "Das Modell startet",
    start: "Starten",
    download: "Herunterladen",
    gone: (name: string) => `${name} gibt es im Hub nicht mehr`,
    install:
      "Um Modelle auszuführen, braucht Parlor llama-server. Installieren Sie es auf dem Rechner, auf dem Parlor läuft:",
    check: "Erneut prüfen",
    which: "Welchen Server benutzen Sie?",
  },

  tailnet: {
    title: "Tailnet",
    intro:
      "Fügen Sie Parlor als Rechner zu Ihrem Tailnet hinzu. Ihre Geräte erreichen es von überall unter einem Namen, ohne offenen Port zum Internet. Tailscale auf diesem Rechner ist nicht betroffen.",
    loadFailed: "Der Tailnet-Status konnte nicht geladen werden",
    states: {
      disabled: "Aus",
      starting: "Startet",
      needs_auth: "Anmeldung erforderlich",
      running: "An",
      stopped: "Gestoppt",
      error: "Fehlgeschlagen",
    },
    name: "Rechnername",
    nameHint:
      "Buchstaben, Ziffern und Bindestriche. Das Tailnet ergänzt seine Domain und, falls der Name vergeben ist, eine Zahl.",
    nameWrong:
      "Verwenden Sie 1 bis 63 Kleinbuchstaben, Ziffern oder Bindestriche, ohne Bindestrich am Anfang oder Ende",
    turnOn: "Einschalten",
    before: "Vor dem Einschalten",
    beforeOpen:
      "Alle in Ihrem Tailnet können Parlor dann erreichen und benutzen, bis unter der neuen Adresse der erste Passkey erstellt ist. Öffnen Sie die Adresse gleich danach und erstellen Sie einen.",
    beforeLog: "Mit HTTPS erscheint der Name in öffentlichen Zertifikatsprotokollen.",
    beforeClosed:
      "Sonst wird auf diesem Rechner nichts aus dem Tailnet erreichbar, außer UDP-Diensten auf 127.0.0.1. Um auch diese zu sperren, erlauben Sie in den Zugriffsregeln des Tailnets nur die Ports 80 und 443.",
    starting: "Der Knoten wird gestartet. Das dauert einige Sekunden, beim ersten Zertifikat bis zu einer Minute.",
    stopping: "Der Knoten wird ausgeschaltet.",
    signIn: "Beim Tailnet anmelden",
    signInText:
      "Melden Sie sich hier an oder scannen Sie diesen Code mit einem Gerät, auf dem Ihr Tailnet-Konto eingerichtet ist.",
    signInQr: "QR-Code mit dem Anmeldelink",
    address: "Adresse",
    addressQr: "QR-Code mit der Adresse",
    copied:
      "Öffnen Sie diese Adresse auf einem Gerät in Ihrem Tailnet und erstellen Sie einen Passkey. Bis dahin können alle im Tailnet Parlor benutzen.",
    plain: "Unverschlüsseltes HTTP",
    plainOpen:
      'Passkeys funktionieren unter dieser Adresse nicht, daher können alle in Ihrem Tailnet Parlor dort benutzen. Um das zu verhindern, setzen Sie pairing = "code" und melden Sie sich mit einem Token an.',
    stopped: "Der Knoten wurde auf diesem Rechner gestoppt.",
    failed: "Fehler beim Tailnet-Knoten",
    notOn: "Der Knoten konnte nicht eingeschaltet werden",
    again: "Erneut versuchen",
    rename: "Umbenennen",
    turnOff: "Ausschalten",
    turnOffAsk: "Tailnet-Knoten ausschalten?",
    turnOffReach: (address: string) => `Parlor ist dann unter ${address} nicht mehr erreichbar.`,
    turnOffHere: "Sie verwenden diese Adresse gerade, daher wird diese Seite nicht mehr funktionieren.",
    turnOffWipe:
      "Der Knoten wird abgemeldet, seine Schlüssel und sein Zertifikat werden gelöscht. Ihre Passkeys und Chats sind nicht betroffen.",
    turnOffAgain:
      "Um ihn wieder einzuschalten, müssen Sie sich erneut beim Tailnet anmelden. Der alte Rechner bleibt in der Rechnerliste des Tailnets. Bis Sie ihn dort löschen, erhält der neue eventuell eine Zahl hinter seinem Namen.",
    turnedOff: "Tailnet-Knoten ausgeschaltet",
  },
  phone: {
    title: "Auf dem Handy nutzen",
    intro: "Wählen Sie eine Adresse, die Ihr Handy erreicht, und scannen Sie dann einen Code, um sich anzumelden.",
    open: "Handy einrichten",
    address: "Adresse für Ihr Handy",
    whyNotLocalhost: (host: string) =>
      `Auf Ihrem Handy ist ${host} das Handy selbst, nicht dieser Rechner. Ihr Handy braucht eine andere Adresse, und Passkeys brauchen HTTPS.`,
    whyHttps:
      "Diese Adresse verwendet kein HTTPS, daher funktionieren Passkeys auf Ihrem Handy nicht. Wählen Sie, wie Sie HTTPS einrichten.",
    ways: {
      tailnet: "Tailnet: Parlor von überall erreichen, ohne offene Ports und ohne Zertifikatsverwaltung",
      proxy: "Reverse-Proxy: Ihre eigene Domain mit eigenem Zertifikat, zum Beispiel mit Caddy",
    },
    proxyText:
      "Richten Sie einen Reverse-Proxy wie Caddy ein, der Ihre Domain über HTTPS bereitstellt und Anfragen an Parlor weiterleitet. Tragen Sie den Proxy in trusted_proxies ein und geben Sie dann hier die Adresse ein. Läuft der Proxy auf diesem Rechner, ist Parlor nicht mehr unter localhost erreichbar. Machen Sie unter der neuen Adresse weiter.",
    proxyAddress: "Adresse",
    proxyWrong: "Geben Sie eine Adresse ein, die mit https:// beginnt und einen Namen hat, keine IP-Adresse",
    checking: "Es wird geprüft, ob Parlor unter dieser Adresse erreichbar ist …",
    checks: {
      ok: "Diese Adresse ist bereit für Ihr Handy.",
      unresolved: "Für diesen Namen gibt es noch keinen DNS-Eintrag",
      unreachable: "Keine Antwort von dieser Adresse",
      certificate: "Das Zertifikat dieser Adresse ist nicht vertrauenswürdig",
      host_not_allowed: "Parlor akzeptiert diesen Namen noch nicht",
      other_server: "Unter dieser Adresse antwortet ein anderer Server",
      proxy_headers: "Parlor erkennt nicht, dass die Verbindung verschlüsselt ist",
      host_changed: "Der Proxy ändert den Hostnamen",
    },
    checkHints: {
      unresolved: (host: string) =>
        `Legen Sie für ${host} einen DNS-Eintrag an, der auf den Proxy zeigt. Bis ein neuer Eintrag gilt, kann es etwas dauern.`,
      unreachable: () =>
        "Prüfen Sie, ob der Proxy läuft und sein Port offen ist. Manche Router erreichen Ihre öffentliche Adresse nicht aus dem eigenen Netz. Von außen kann Ihr Handy sie dann trotzdem erreichen.",
      certificate: () =>
        "Auch Ihr Handy würde ihm nicht vertrauen. Caddy bezieht automatisch ein Zertifikat, sobald der Name auf den Proxy zeigt. Für andere Proxys brauchen Sie eines von einer öffentlichen Stelle wie Let’s Encrypt.",
      host_not_allowed: (host: string) =>
        `Tragen Sie ${host} in der Konfiguration bei allowed_hosts ein und starten Sie Parlor neu.`,
      other_server: () => "Prüfen Sie, wohin der Proxy Anfragen für diesen Namen weiterleitet.",
      proxy_headers: () =>
        "Der Proxy muss X-Forwarded-Proto und X-Forwarded-For senden, und seine Adresse muss in trusted_proxies stehen.",
      host_changed: (host: string) => `Der Proxy muss den Host-Header unverändert weiterleiten: ${host}.`,
    },
    scan: "Mit Ihrem Handy scannen",
    waitingAddress: "Der Code erscheint hier, sobald die Adresse bereit ist.",
    scanText: "Richten Sie die Kamera Ihres Handys auf den Code, öffnen Sie den Link und erstellen Sie einen Passkey.",
    waitingDevice: "Warten auf die Anmeldung Ihres Handys",
    arrived: (name: string) => `${name} ist angemeldet`,
    unreachable:
      "Nichts passiert? Prüfen Sie, ob Ihr Handy im selben Tailnet oder Netzwerk ist und Parlor unter dieser Adresse öffnen kann.",
  },
};
