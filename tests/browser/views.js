// Measures texts of a page: RECORD first, before canvases are drawn; then TEXTS for each element.

// What a canvas draws as text, with what is behind it.
const record = () => {
    const plain = CanvasRenderingContext2D.prototype.fillText;
    const drawn = new Map();  // canvas -> texts of its last picture
    window.canvasTexts = () => [...drawn].filter(([canvas]) => canvas.isConnected).flatMap(([, texts]) => [...texts.values()]);
    const clear = CanvasRenderingContext2D.prototype.clearRect;
    CanvasRenderingContext2D.prototype.clearRect = function (...args) { drawn.delete(this.canvas); return clear.apply(this, args); };
    CanvasRenderingContext2D.prototype.fillText = function (text, x, y, ...rest) {
        const ground = effectiveGround(this.canvas, this, x, y, this.measureText(text).width);
        const ink = rgba(this.fillStyle);
        ink[3] *= this.globalAlpha;
        if (!drawn.has(this.canvas)) drawn.set(this.canvas, new Map());
        drawn.get(this.canvas).set(text + x + y, { text: 'canvas: ' + text, ratio: ratio(over(ink, ground), ground), size: parseFloat(this.font.match(/([\d.]+)px/)[1]) });
        return plain.call(this, text, x, y, ...rest);
    };
    const probe = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
    const known = new Map();
    window.rgba = (color) => {
        if (!known.has(color)) {
            clear.call(probe, 0, 0, 1, 1);
            probe.fillStyle = '#000'; probe.fillStyle = color; probe.fillRect(0, 0, 1, 1);
            const [r, g, b, a] = probe.getImageData(0, 0, 1, 1).data;
            known.set(color, [r, g, b, a / 255]);
        }
        return [...known.get(color)];
    };
    window.over = ([r, g, b, a], ground) => [r, g, b].map((v, i) => v * a + ground[i] * (1 - a)).concat(1);
    const light = (c) => c.slice(0, 3).map((v) => v / 255).map((v) => (v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4))
        .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
    window.ratio = (a, b) => { const [low, high] = [light(a), light(b)].sort((x, y) => x - y); return (high + 0.05) / (low + 0.05); };
    const opacity = (el) => { let all = 1; for (let e = el; e instanceof Element; e = e.parentElement) all *= Number(getComputedStyle(e).opacity); return all; };
    window.opacityOf = opacity;
    window.paintOf = (el, x, y) => {
        const style = getComputedStyle(el);
        if (el instanceof SVGElement && !(el instanceof SVGSVGElement)) {
            if (el.closest('text') || el.tagName === 'g' || style.fill === 'none') return [0, 0, 0, 0];
            const at = x !== undefined && el.isPointInFill && new DOMPoint(x, y).matrixTransform(el.getScreenCTM().inverse());
            if (at && !el.isPointInFill(at)) return [0, 0, 0, 0];  // the point is on its edge
            const c = rgba(style.fill); c[3] *= Number(style.fillOpacity) * opacity(el); return c;
        }
        const c = rgba(style.backgroundColor); c[3] *= opacity(el); return c;
    };
    window.groundAt = (x, y, without) => {
        const stack = document.elementsFromPoint(x, y).filter((el) => !without || (el !== without && !without.contains(el)));
        let colors = stack.map((el) => paintOf(el, x, y)), ground = [255, 255, 255, 1];
        for (const c of colors.reverse()) ground = over(c, ground);
        return ground;
    };
    window.effectiveGround = (canvas, context, x, y, width) => {
        let ground = [255, 255, 255, 1];
        for (const el of [...(function* (e) { for (; e; e = e.parentElement) yield e; })(canvas)].reverse()) ground = over(paintOf(el), ground);
        const shift = { left: 0.5, start: 0.5, center: 0, right: -0.5, end: -0.5 }[context.textAlign] * width;
        const at = context.getTransform().transformPoint(new DOMPoint(x + shift, y));
        const [r, g, b, a] = context.getImageData(Math.max(0, Math.min(canvas.width - 1, at.x)), Math.max(0, Math.min(canvas.height - 1, at.y)), 1, 1).data;
        return over([r, g, b, a / 255], ground);
    };
};

// All texts inside an element: what they say, their contrast, their size in pixels of the screen.
const texts = root => {
    root.scrollIntoView({ block: 'start' });
    const style = document.createElement('style');
    style.textContent = '* { pointer-events: auto !important; }';
    document.head.append(style);
    const found = [];
    const add = (el, text, box, ink) => {
        const [x, y] = [box.left + box.width / 2, box.top + box.height / 2];
        if (box.width < 1 || box.height < 1) return;
        const there = document.elementsFromPoint(x, y);
        if (!there.some((each) => each === el || el.contains(each) || (each.contains(el) && each.closest('svg') && each !== document.body && el.closest('text')))) return;
        const ground = groundAt(x, y, el.closest('text'));
        ink[3] *= opacityOf(el);
        let size = parseFloat(getComputedStyle(el).fontSize);
        const svg = el.closest('text');
        if (svg) { const m = svg.getScreenCTM(); size *= Math.hypot(m.a, m.b); }
        found.push({ text: (el.className?.baseVal ?? el.className) + ': ' + text.trim().slice(0, 40), ratio: ratio(over(ink, ground), ground), size, ink: ink.map(Math.round), ground: ground.map(Math.round) });
    };
    const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
    for (let node; (node = walker.nextNode()); ) {
        const el = node.parentElement;
        if (!node.data.trim() || el.closest('style, script, title, select, :disabled, [aria-disabled="true"]')) continue;
        const css = getComputedStyle(el);
        if (css.visibility !== 'visible') continue;
        const range = document.createRange(); range.selectNodeContents(node);
        const box = [...range.getClientRects()].sort((a, b) => b.width - a.width)[0];
        if (box) add(el, node.data, box, rgba(el.closest('text') ? css.fill : css.color));
    }
    for (const el of root.querySelectorAll('input:not([type=range], [type=checkbox], [type=radio]):not(:disabled), select:not(:disabled)')) {
        const hint = el.tagName === 'INPUT' && !el.value;
        const text = hint ? el.placeholder : el.value;
        const css = getComputedStyle(el, hint ? '::placeholder' : undefined);
        const ink = rgba(css.color);
        if (hint) ink[3] *= Number(css.opacity);
        if (text) add(el, text, el.getBoundingClientRect(), ink);
    }
    style.remove();
    return found;
};
