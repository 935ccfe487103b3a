"""Finding boxes in images: priors, coding and comparing boxes, matching, suppression, regions, YOLO."""
